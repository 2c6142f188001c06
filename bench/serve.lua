-- For wrk: POST one question after another from a file with a JSON body a line, then print the counts as JSON.
local bodies, at = {}, 0

function init(arguments)
  for line in io.lines(arguments[1]) do bodies[#bodies + 1] = line end
  wrk.method, wrk.path = "POST", "/api/v1/complete"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  at = at % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[at])
end

function done(summary, latency, requests)
  local e = summary.errors
  print(string.format(
    '{"requests": %d, "seconds": %.3f, "p50_ms": %.2f, "p99_ms": %.2f, "max_ms": %.2f, "errors": %d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
