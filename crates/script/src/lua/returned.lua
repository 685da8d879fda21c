-- Shared by both hooks: how a value is named in an error about what a hook returned.

local SHOWN_MAX = 60

return function(value)
	local kind = type(value)
	if kind == "string" then
		if #value > SHOWN_MAX then
			return '"' .. string.sub(value, 1, SHOWN_MAX) .. '.." (a string)'
		end
		return '"' .. value .. '" (a string)'
	end
	if kind == "number" or kind == "boolean" then
		return tostring(value) .. " (a " .. kind .. ")"
	end
	if value == nil then
		return "nil"
	end
	return "a " .. kind
end
