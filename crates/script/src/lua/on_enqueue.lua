-- Calls on_enqueue for one message. Strings come and go in two buffers; `enqueue.rs` has the other
-- half and says how they lie in them. It is one long function because every call and every return
-- costs an interrupt.

local key_bytes_max, attributes_max, attribute_bytes_max =
	limits.key_bytes_max, limits.attributes_max, limits.attribute_bytes_max
-- Room for attributes after a key of at most so many bytes.
local plain_key_bytes = buffer.len(output) - attribute_bytes_max - 4 * attributes_max

local function wrong(what, value, wanted)
	error("on_enqueue returned " .. what .. describe(value) .. "; it must be " .. wanted, 0)
end

local function wrong_attribute(name, value)
	if type(name) ~= "string" then
		wrong("attributes with the name ", name, "a string")
	end
	wrong("attributes." .. string.sub(name, 1, 60) .. " = ", value, "a string")
end

local function too_much(what, most)
	error("on_enqueue returned " .. what .. "; at most " .. most, 0)
end

-- Returns weight (0: none), bytes of the key (-1: none), count of attributes, bytes written, and
-- the buffer they are in when they need a larger one.
local function run(large, shape, values_at, text_bytes, payload_size, weight, key_bytes)
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
		payload_size = payload_size,
		queue = queue,
		fairness_key = if key_bytes < 0 then nil else string.sub(text, at, at + key_bytes - 1),
		weight = weight,
	})
	if result == nil then
		return 0, -1, 0, 0
	end
	if type(result) ~= "table" then
		wrong("", result, "a table or nil")
	end
	local key, attributes = result.fairness_key, result.attributes
	weight = result.weight
	if weight == nil then
		weight = 0
	elseif type(weight) ~= "number" or weight ~= math.floor(weight) or weight < 1
		or weight > 4294967295 then
		wrong("weight = ", weight, "a whole number from 1 to 4294967295")
	end
	local into, larger = output, nil
	key_bytes, at = -1, 0
	if key ~= nil then
		if type(key) ~= "string" then
			wrong("fairness_key = ", key, "a string")
		end
		key_bytes, at = #key, #key
		if key_bytes > plain_key_bytes then
			if key_bytes > key_bytes_max then
				too_much("a fairness_key of " .. key_bytes .. " bytes", key_bytes_max)
			end
			larger = buffer.create(key_bytes + attribute_bytes_max + 4 * attributes_max)
			into = larger
		end
		buffer.writestring(into, 0, key)
	end
	if attributes == nil then
		return weight, key_bytes, 0, at, larger
	end
	if type(attributes) ~= "table" then
		wrong("attributes = ", attributes, "a table")
	end
	local count, bytes = 0, 0
	for name, value in attributes do
		if type(name) ~= "string" or type(value) ~= "string" then
			wrong_attribute(name, value)
		end
		count += 1
		bytes += #name + #value
		if count > attributes_max then
			too_much("more attributes", attributes_max)
		end
		if bytes > attribute_bytes_max then
			too_much("attributes of " .. bytes .. " bytes", attribute_bytes_max)
		end
		buffer.writeu16(into, at, #name)
		buffer.writeu16(into, at + 2, #value)
		buffer.writestring(into, at + 4, name)
		buffer.writestring(into, at + 4 + #name, value)
		at += 4 + #name + #value
	end
	return weight, key_bytes, count, at, larger
end

return learn, run
