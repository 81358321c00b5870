-- purge: deletes dead letters, and each one's publish-dedupe marker when it still names that message.
-- KEYS: 1 dlq, 2… sent markers, one an id (dlq again where there is no dedupe id)
-- ARGV: an entry id and its stable id, a pair a dead letter
-- returns: how many were deleted
return guarded(function()
  local n = 0
  for i = 1, #ARGV, 2 do
    local sent = KEYS[(i + 1) / 2 + 1]
    if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
      n = n + 1
      if sent ~= KEYS[1] and redis.pcall('GET', sent) == ARGV[i + 1] then redis.call('DEL', sent) end
    end
  end
  return n
end)
