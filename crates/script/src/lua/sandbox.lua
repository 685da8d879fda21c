-- Takes away what a script must not have, and bounds the library functions that would run for
-- long without ever asking whether the time is over. Runs once, before the sandbox is closed.

local get_runtime = ...

local type, error, select = type, error, select
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local split, format, rep = string.split, string.format, string.rep
local sort, move = table.sort, table.move

for _, name in { "collectgarbage", "gcinfo", "getfenv", "loadstring", "newproxy", "print",
	"require", "setfenv" } do
	_G[name] = nil
end
-- They call C functions in a loop of their own, where no interrupt comes.
table.foreach = nil
table.foreachi = nil

-- A search takes up to the product of both lengths before the next interrupt.
local SEARCH_MAX = 524288
local REPLACEMENT_MAX = 65536
local MOVE_MAX = 131072
local FORMAT_VALUES_MAX = 64

local function check_search(text, pattern)
	if type(text) == "string" and type(pattern) == "string"
		and #text * #pattern > SEARCH_MAX then
		error("text and pattern are too long to be searched: " .. #text .. " and " .. #pattern
			.. " bytes, their product is at most " .. SEARCH_MAX, 3)
	end
end

function string.find(text, pattern, init, plain)
	check_search(text, pattern)
	return find(text, pattern, init, plain)
end

function string.match(text, pattern, init)
	check_search(text, pattern)
	return match(text, pattern, init)
end

function string.gmatch(text, pattern)
	check_search(text, pattern)
	return gmatch(text, pattern)
end

function string.gsub(text, pattern, replacement, most)
	check_search(text, pattern)
	if type(replacement) == "string" and #replacement > REPLACEMENT_MAX then
		error("the replacement is too long: " .. #replacement .. " bytes, at most "
			.. REPLACEMENT_MAX, 2)
	end
	return gsub(text, pattern, replacement, most)
end

function string.rep(text, times)
	-- As often as it is told, also when there is nothing to repeat.
	if text == "" then
		return text
	end
	return rep(text, times)
end

function string.split(text, separator)
	check_search(text, separator)
	return split(text, separator)
end

function string.format(...)
	if select("#", ...) > FORMAT_VALUES_MAX then
		error("string.format takes at most " .. FORMAT_VALUES_MAX - 1 .. " values", 2)
	end
	return format(...)
end

local function is_less(a, b)
	return a < b
end

function table.sort(list, before)
	if before == nil then
		return sort(list, is_less)
	end
	if type(before) ~= "function" then
		error("table.sort takes a function", 2)
	end
	return sort(list, function(a, b)
		return before(a, b)
	end)
end

function table.move(from, first, last, to, into)
	if type(first) == "number" and type(last) == "number" and last - first >= MOVE_MAX then
		error("table.move moves at most " .. MOVE_MAX .. " values", 2)
	end
	if into == nil then
		return move(from, first, last, to)
	end
	return move(from, first, last, to, into)
end

fila = {
	get = function(key)
		if type(key) ~= "string" then
			error("fila.get takes the key as a string, not a " .. type(key), 2)
		end
		return get_runtime(key)
	end,
}
