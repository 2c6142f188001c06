"""The files of GraIL's inductive splits (Teru et al., 2020), as published: a commit, and the SHA-256 of each.

A version has two graphs that share relations: models train on `X_vN/train.txt` and are chosen by `X_vN/valid.txt`; they
answer `X_vN_ind/test.txt` from the facts of `X_vN_ind/train.txt`. What else is published, `X_vN/test.txt` and
`X_vN_ind/valid.txt`, has no part in the figures that others report (NBFNet's), and none here.
"""

from __future__ import annotations

URL = "https://raw.githubusercontent.com/kkteru/grail/2a3dffa719518e7e6250e355a2fb37cd932de91e/data"

SHA256 = {
    "WN18RR_v1/train.txt": "4cc72d4fdcc8206e208e1f59f3c778be5de4a68cfe76776d15245b0d2c08d396",
    "WN18RR_v1/valid.txt": "5cebd29da8ada35ac73b6875329884cdf83943ddea454e9f70cc43b423ea479b",
    "WN18RR_v1_ind/train.txt": "7d1b73c5994e9aa816b34e33ee10707656803ba6b8a0f6066cae7ddc04f87553",
    "WN18RR_v1_ind/test.txt": "6df8c00a2e0cf1a4b484ac638c081198926fcbc411ce2e12ccc79d432eead269",
    "WN18RR_v2/train.txt": "a14a902df92e32f4aeb65761560072a007ae915308bb8a7a03c58dc1e9c2a9ad",
    "WN18RR_v2/valid.txt": "2d3f6703d87fe1605f636736f0e848d9750b8e1593bd41101554ecbb41a1d836",
    "WN18RR_v2_ind/train.txt": "8dc9bb459e6306737a083b15698ed1420ce8dc57e27f8a42ab7b90c26dfc5154",
    "WN18RR_v2_ind/test.txt": "3b3942ce7665f1a6667721f5eab946bde79a5929f1996c5af16e0b092a5084bb",
    "WN18RR_v3/train.txt": "324a2b04b621bfe8d2dd98ad1c585fbc7efefb1548e92b5d10afc08733286aa7",
    "WN18RR_v3/valid.txt": "7f008df4879d36ef70a5c5eb58a7c87488c3f1fea606ab484e66a1aff89b0cbc",
    "WN18RR_v3_ind/train.txt": "85b817c364d097793a4b0969fa49d20167345256bf812c978bff381ad3aef492",
    "WN18RR_v3_ind/test.txt": "efad21a11c1cf26a1a4a5fcf7a64c585ccde3c4f8f71de3a00a995d9e8c9938d",
    "WN18RR_v4/train.txt": "5eace2cdfdffb2b19c6d27c7527ae79b8f4b1b3fb712d9a5049243a13edb95ca",
    "WN18RR_v4/valid.txt": "ca1568ca934bbf5ccfeabb3a67010968433c0e5bc1df9b0d3d48279023abd7bd",
    "WN18RR_v4_ind/train.txt": "d5608132dab5873666e249c1de9412608c0e0b2cc0d154b0ffceff1ce067cc03",
    "WN18RR_v4_ind/test.txt": "10ccff353175e6eaaff0b3d7ef7931115845868653ddba0ba6fb5c8dfdab6364",
    "fb237_v1/train.txt": "74ef3120fe38a22e5131064d23108b88a8d339496057fa8467d80dcda8f1cec1",
    "fb237_v1/valid.txt": "d4c2698d7dc36c0dc39ffb3d810caeafe530d779bf9f6451fac2027f41c2ff6d",
    "fb237_v1_ind/train.txt": "049829f7047ecf0e0bff0769efca31bc7f811f760c4ffcb20a5680f789b00c61",
    "fb237_v1_ind/test.txt": "c79d39372be30a3864cfe5094b3022f38b57d88c351dbbfa2d9e7f3368ac23aa",
    "fb237_v2/train.txt": "542f81af46d6727979278643105ba7c236dd8b29ee5d9962e3c3fa295ab8869c",
    "fb237_v2/valid.txt": "59e07dcb883b28bb35585ba95576e4ebb2a71ddbc906119abcc4c87b28198d0c",
    "fb237_v2_ind/train.txt": "6756f8d4aa688bc1a18c1106117a7fde94e0469f223f5d00954846afce471e54",
    "fb237_v2_ind/test.txt": "17c16e008cb6dfdc67ef0f375aab0a8fee2b087c7d687a72f5217b789d0c4a10",
    "fb237_v3/train.txt": "0f27b7f00d3e34964450c22445d17f7612d12d7c382caa3317f45bfe7465f299",
    "fb237_v3/valid.txt": "8b034e73fe64af9c7baf1e12704a94e7e9a9e6b9242feb498c69ebd65bccf269",
    "fb237_v3_ind/train.txt": "2805f9237816f5bb5bb1ff1fbc3d37cc0beb99047bef3a6bd82cc1f6947e8525",
    "fb237_v3_ind/test.txt": "7dbd4d74210ffd5029d95327639f83c3b46f8bd4ee3571e619812b367d0880da",
    "fb237_v4/train.txt": "b9fa0f2650a1ab7687e21e0aec24bb51c0b0eacf0d88c8780c03c9b201b9148d",
    "fb237_v4/valid.txt": "d99dedcd13bc0cd338a299a895685b66f15e0b7ed42477d40f1ad1a65ce6d483",
    "fb237_v4_ind/train.txt": "ef55c03e05d5eeeec97fe2030e92bc36bd5ee9311b770ae0a3fd812982686e8d",
    "fb237_v4_ind/test.txt": "8e6e19adb9b154348897bf896b5305a76126bc4d79a21705ea47e4efce2d84f3",
}
