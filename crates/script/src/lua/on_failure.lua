-- Calls on_failure for one failed delivery. `failure.rs` has the other half and says how the
-- strings lie in the buffer.

local delay_ms_max = limits.delay_ms_max

-- Returns the action (0: none, 1: retry, 2: dlq) and the delay (-1: none).
local function decision(result)
	if type(result) ~= "table" then
		error("on_failure returned " .. describe(result) .. "; it must be a table or nil", 0)
	end
	local action, delay_ms = result.action, result.delay_ms
	if action ~= "retry" and action ~= "dlq" then
		error("on_failure returned action = " .. describe(action)
			.. '; it must be "retry" or "dlq"', 0)
	end
	if delay_ms == nil then
		delay_ms = -1
	elseif type(delay_ms) ~= "number" or delay_ms ~= math.floor(delay_ms) or delay_ms < 0
		or delay_ms > delay_ms_max then
		error("on_failure returned delay_ms = " .. describe(delay_ms)
			.. "; it must be a whole number from 0 to " .. string.format("%d", delay_ms_max), 0)
	end
	return if action == "retry" then 1 else 2, delay_ms
end

local function run(large, shape, values_at, text_bytes, id_bytes, attempts, redrives, nacked)
	local from = large or input
	local text = buffer.readstring(from, values_at, text_bytes)
	local headers, at = table.clone(template_of[shape]), 1
	for place, name in names_of[shape] do
		local next_at = at + buffer.readu16(from, 2 * place - 2)
		headers[name] = string.sub(text, at, next_at - 1)
		at = next_at
	end
	local result = hook({
		headers = headers,
		id = string.sub(text, at, at + id_bytes - 1),
		attempts = attempts,
		redrives = redrives,
		queue = queue,
		reason = if nacked then "nack" else "lease_expired",
		error = string.sub(text, at + id_bytes),
	})
	if result == nil then
		return 0, -1
	end
	return decision(result)
end

return learn, run
