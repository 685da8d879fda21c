-- The first part of both hooks' chunks: tables of headers.
--
-- Most messages of a queue have the same header names in the same order. Such a shape is learnt
-- once; a message of it is a copy of a table that has the names already, and only its values are
-- cut out. Every call gets a table of its own: what a script keeps of one message never shows
-- another.

local hook, describe, queue, limits, input, output = ...

-- Names in their order, and a table that has them all.
local names_of, template_of = {}, {}

-- Learns a shape: `u16` lengths, then the names.
local function learn(large, shape, count)
	local from = large or input
	local names, template = table.create(count), {}
	local at = 2 * count
	for place = 1, count do
		local length = buffer.readu16(from, 2 * place - 2)
		local name = buffer.readstring(from, at, length)
		names[place] = name
		template[name] = ""
		at += length
	end
	names_of[shape] = names
	template_of[shape] = template
end

