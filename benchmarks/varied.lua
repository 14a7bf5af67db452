-- Requests that differ: @N@ in path and body is a number that grows, @D@ its last digit. Prints what wrk.lua prints.
local method, target, body = os.getenv("METHOD") or "GET", os.getenv("TARGET"), os.getenv("BODY") or ""
local number = tonumber(os.getenv("FIRST") or "0")
local headers = { ["Authorization"] = "Bearer " .. os.getenv("TOKEN"), ["Accept"] = os.getenv("ACCEPT") or "application/json" }
if #body > 0 then headers["Content-Type"] = os.getenv("CONTENT_TYPE") or "application/json" end
local function fill(text) return (text:gsub("@N@", tostring(number)):gsub("@D@", tostring(number % 10))) end
request = function()
  number = number + 1
  return wrk.format(method, fill(target), headers, #body > 0 and fill(body) or nil)
end
done = function(s, l, r)
  io.write(string.format("RESULT %.1f %.3f %.3f %d %d %.3f %d\n", s.requests / (s.duration / 1e6), l:percentile(50) / 1000,
    l:percentile(99) / 1000, s.errors.connect + s.errors.read + s.errors.write + s.errors.timeout, s.errors.status,
    s.bytes / 1e6 / (s.duration / 1e6), s.requests))
end
