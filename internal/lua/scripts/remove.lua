-- remove: takes a consumer out, its Redis consumers and its record; only when it holds nothing.
-- KEYS: 1 main, 2 retry, 3 workers
-- ARGV: 1 group, 2 consumer
-- returns: how many entries it still holds; 0 = removed
return guarded(function()
  local held = 0
  for _, stream in ipairs({KEYS[1], KEYS[2]}) do
    local p = redis.pcall('XPENDING', stream, ARGV[1])
    if p.err then
      if not string.find(p.err, 'NOGROUP', 1, true) then return redis.error_reply(p.err) end
    elseif p[4] then
      for _, c in ipairs(p[4]) do
        if c[1] == ARGV[2] then held = held + tonumber(c[2]) end
      end
    end
  end
  if held > 0 then return held end
  for _, stream in ipairs({KEYS[1], KEYS[2]}) do redis.pcall('XGROUP', 'DELCONSUMER', stream, ARGV[1], ARGV[2]) end
  redis.call('HDEL', KEYS[3], ARGV[2])
  return 0
end)
