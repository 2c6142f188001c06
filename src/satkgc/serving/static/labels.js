// The relations at the edges of a drawing: where there is room, beside the names of nodes and beside each other.

const LETTER = 5.5, TALL = 13; // of the small type
const SPOTS = [0.5, 0.4, 0.6, 0.3, 0.7];

// lines: [{group, text, edge, curve: [start, middle, end]}]; boxes: nodes with x, y of their middles, width, height.
// What finds no room stays hidden until its node is looked at.
export function label(lines, boxes, size) {
  const taken = [...boxes], said = new Set(); // of two edges that go there and back by one relation, one says it
  const first = ({ edge }) => (edge.kind === "asked" ? 0 : edge.kind === "path" ? 1 : 2);
  for (const { group, text, edge, curve } of [...lines].sort((a, b) => first(a) - first(b))) {
    const name = JSON.stringify([...[edge.from, edge.to].sort(), edge.label]);
    if (said.has(name)) continue;
    const width = LETTER * text.textContent.length * (edge.kind === "asked" ? 1.2 : 1);
    const spot = SPOTS.map((t) => box(curve, t, width)).find((one) => inside(one, size) && !taken.some((other) => overlap(one, other)));
    if (edge.kind === "asked") {
      taken.push(box(curve, 0.5, width)); // it stays where it is
    } else if (spot) {
      taken.push(spot);
      text.setAttribute("x", spot.x);
      text.setAttribute("y", spot.y + 3.5);
      group.classList.add("named");
      said.add(name);
    }
  }
}

function box([[x1, y1], [mx, my], [x2, y2]], t, width) {
  const at = (a, b, c) => (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t ** 2 * c;
  return { x: at(x1, mx, x2), y: at(y1, my, y2), width, height: TALL };
}

const inside = ({ x, y, width, height }, size) =>
  x - width / 2 >= 0 && x + width / 2 <= size.width && y - height / 2 >= 0 && y + height / 2 <= size.height;

const overlap = (a, b) => Math.abs(a.x - b.x) < (a.width + b.width) / 2 + 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2;
