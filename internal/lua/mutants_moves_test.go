package lua

var tenDigits = []patch{{"lib", `math.min(counter(v) + 1, 999999999)`, `counter(v) + 1`}}

var moveMutants = []mutant{
	{"no owner check", "settle fail, main, held by another", []patch{
		{"lib", `redis.call('XPENDING', k[src], group, id, id, 1, consumer)[1] ~= nil`, `redis.call('XPENDING', k[src], group, id, id, 1)[1] ~= nil`},
	}},
	{"no owner check before an ack", "settle ack, retry, held by another", []patch{
		{"lib", `redis.call('XPENDING', k[src], group, id, id, 1, consumer)[1] ~= nil`, `redis.call('XPENDING', k[src], group, id, id, 1)[1] ~= nil`},
	}},
	{"no question whether it is pending", "settle release, retry, pending for nobody", []patch{
		{"lib", `redis.call('XPENDING', k[src], group, id, id, 1, consumer)[1] ~= nil`, `true`},
	}},
	{"ack before copy: park", "settle: a parked hash or a due set of the wrong type", []patch{
		{"settle", `    local member = park(`, `    ack(k, group, src, id)
    local member = park(`},
	}},
	{"ack before copy: dead", "settle: a dead letter stream of the wrong type", []patch{
		{"settle", `      local at, said = bury(k, f, why, set)
      ack(k, group, src, id)`, `      ack(k, group, src, id)
      local at, said = bury(k, f, why, set)`},
	}},
	{"ack before copy: release", "settle: a retry stream of the wrong type", []patch{
		{"settle", `      local said = hand(k, f, set)
      ack(k, group, src, id)`, `      ack(k, group, src, id)
      local said = hand(k, f, set)`},
	}},
	{"ack before copy: reclaim", "reclaim: one that cannot be moved does not stop those behind it", []patch{
		{"reclaim", `    local had = counter`, `    ack(k, group, src, id)
    local had = counter`},
	}},
	{"removed before copied: promote", "promote: a target of the wrong type is reported, nothing is lost", []patch{
		{"promote", `    bytes = bytes - #v
`, `    bytes = bytes - #v
    redis.call('HDEL', KEYS[2], member)
`},
	}},
	{"removed before copied: redrive", "redrive: a target of the wrong type keeps the dead letter", []patch{
		{"redrive", `    local where
`, `    local where
    redis.call('XDEL', KEYS[4], id)
`},
	}},
	{"parked without a due time", "settle: a parked hash or a due set of the wrong type", []patch{
		{"lib", `    redis.call('HDEL', parked, name)
    error(message(err), 0)`, `    error(message(err), 0)`},
	}},
	{"one entry's error ends the call: settle", "settle: a dead letter stream of the wrong type", []patch{
		{"settle", `    out[#out + 1] = ok and res or 'error ' .. message(res)`, `    out[#out + 1] = ok and res or 'error ' .. message(res)
    if not ok then i = #ARGV for j = #out + 1, (#ARGV - 3) / 8 do out[j] = 'lost' end break end`},
	}},
	{"one entry's error ends the call: reclaim", "reclaim: one that cannot be moved does not stop those behind it", []patch{
		{"reclaim", `if not ok then res = 'error ' .. message(res) end`, `if not ok then return {'', moved, deleted, 'error ' .. message(res)} end`},
	}},
	{"one entry's error ends the call: promote", "promote: dead letters of the wrong type do not stop those behind", []patch{
		{"promote", `res = 'error ' .. message(res)`, `res, limit = 'error ' .. message(res), 0`},
	}},
	{"member = oid/rc", "settle: two entries that call themselves one message stay two", []patch{
		{"settle", `src .. '/' .. id, rewrite(f, set), now() + tonumber(delay))`, `set.oid .. '/' .. (set.rc or '0'), rewrite(f, set), now() + tonumber(delay))`},
	}},
	{"member = oid: redrive", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `'x/' .. id`, `'x/' .. set.oid`},
	}},
	{"taken member overwritten", "settle: a taken member is never overwritten", []patch{
		{"lib", `while call('HSETNX', parked, name, value) == 0 do`, `call('HSET', parked, name, value)
  while false do`},
	}},
	{"taken member moves nothing", "settle: a taken member is never overwritten", []patch{
		{"lib", `while call('HSETNX', parked, name, value) == 0 do`, `while call('HSETNX', parked, name, value) == 0 do
    if true then return name end`},
	}},
	{"taken member overwritten by a redrive", "redrive: a taken member is never overwritten", []patch{
		{"lib", `while call('HSETNX', parked, name, value) == 0 do`, `call('HSET', parked, name, value)
  while false do`},
	}},
	{"release by handing over under its id", "settle release, main, held", []patch{
		{"settle", `      local said = hand(k, f, set)
      ack(k, group, src, id)`, `      local said
      redis.call('XCLAIM', k[src], group, 'next', 0, id, 'JUSTID')`},
	}},
	{"release counts as lost", "settle release, main, held", []patch{
		{"settle", `if verb == 'release' or verb == 'cut' then`, `if verb == 'release' or verb == 'cut' then
      set.lost = int(onemore(field(f, 'lost')))`},
	}},
	{"cut counts as failure", "settle cut, retry, held", []patch{
		{"settle", `        set.cut = int(cut)`, `        set.cut = int(cut)
        set.rc = int(onemore(field(f, 'rc')))`},
	}},
	{"cut without a cap", "settle cut too often, main, held", []patch{
		{"settle", `if cut > tonumber(limit) then`, `if false then`},
	}},
	{"snooze spends an attempt", "settle snooze, main, held", []patch{
		{"settle", `    if verb == 'fail' then
`, `    if verb ~= 'x' then
`},
	}},
	{"a failure leaves the lost leases in a row", "settle fail, main, held", []patch{
		{"settle", `    set.lost = false
`, ``},
	}},
	{"one retry more", "settle fail the last time, main, held", []patch{
		{"settle", `rc > max then`, `rc > max + 1 then`},
	}},
	{"retries end although for ever", "settle fail for ever, main, held", []patch{
		{"settle", `if max >= 0 and rc > max`, `if rc > max`},
	}},
	{"counters are any number", "settle: junk counters count as 0", []patch{
		{"lib", `if v and #v <= 9 and string.match(v, '^%d+$') then return tonumber(v) end`, `if v and tonumber(v) then return tonumber(v) end`},
	}},
	{"counters grow to ten digits: settle", "settle: counters stop at nine digits", tenDigits},
	{"counters grow to ten digits: reclaim", "reclaim: counters stop at nine digits", tenDigits},
	{"counters grow to ten digits: redrive", "redrive: counters stop at nine digits", tenDigits},
	{"the snooze has a cap", "settle: most parked", []patch{
		{"settle", `if verb == 'fail' and cap > 0`, `if cap > 0`},
	}},
	{"parked without a cap", "settle: most parked", []patch{
		{"settle", `if verb == 'fail' and cap > 0`, `if false`},
	}},
	{"marker only when XACK removed something", "settle: markers", []patch{
		{"settle", `if marker ~= '0' then`, `if held and marker ~= '0' then`},
	}},
	{"no marker when the group is gone", "settle: no group", []patch{
		{"settle", `if marker ~= '0' then`, `if asked and marker ~= '0' then`},
	}},
	{"a deleted entry counts as acked", "settle fail, main, deleted", []patch{
		{"settle", `if not f then return 'gone' end`, `if not f then ack(k, group, src, id) return 'gone' end`},
	}},
	{"what was kept of a deleted entry is not used", "settle release, retry, deleted", []patch{
		{"settle", `f = extra ~= '' and unpacked(extra)`, `f = nil`},
	}},
	{"a retry stays in its stream after its ack", "settle ack, retry, held", []patch{
		{"lib", `    redis.call('XDEL', k.r, id)
`, ``},
	}},
	{"the stable id is the latest entry's", "settle fail, retry, held", []patch{
		{"lib", `if oid and oid ~= '' then return oid end`, ``},
	}},
	{"too wide: passed on field by field", "too wide: every way out", []patch{
		{"lib", `local WIDE = 3900`, `local WIDE = 999999`},
	}},
	{"too wide: its fields are dropped", "too wide: reclaimed, its neighbours too", []patch{
		{"lib", `{'packed', pack(f)}`, `{'packed', pack({'body', field(f, 'body') or ''})}`},
	}},
	{"a name counts once", "foreign: duplicate names", []patch{
		{"lib", `    if set[f[i]] == nil then
      out`, `    local had = false
    for j = 1, n, 2 do had = had or out[j] == f[i] end
    if set[f[i]] == nil and not had then
      out`},
	}},
	{"unknown fields go last", "foreign: unknown fields around the body", []patch{
		{"lib", `  for _, name in ipairs(ORDER) do
    if set[name] then`, `  for i = 1, n - 2, 2 do
    if out[i] ~= 'body' and out[i + 2] == 'body' then out[i], out[i + 1], out[i + 2], out[i + 3] = out[i + 2], out[i + 3], out[i], out[i + 1] end
  end
  for _, name in ipairs(ORDER) do
    if set[name] then`},
	}},
	{"empty fields are dropped", "foreign: empty names and values", []patch{
		{"lib", `if set[f[i]] == nil then`, `if set[f[i]] == nil and f[i] ~= '' then`},
	}},
	{"parked values end at a zero byte", "foreign: binary", []patch{
		{"lib", `for i = 1, #f do out[i + 1] = #f[i] .. ':' .. f[i] .. ',' end`, `for i = 1, #f do local s = string.format('%s', f[i]) s = string.match(s, '^[^%z]*') out[i + 1] = #s .. ':' .. s .. ',' end`},
	}},
	{"no suspects", "reclaim: suspects are parked apart", []patch{
		{"reclaim", `elseif lost >= SUSPECT and`, `elseif false and`},
	}},
	{"neighbours of a suspect count too", "reclaim: only the suspect that ran alone is counted", []patch{
		{"reclaim", `if had >= SUSPECT and not`, `if false and not`},
	}},
	{"an entry of the main stream with the suspect's id", "reclaim: only the suspect that ran alone is counted", []patch{
		{"reclaim", `(src == 'r' and l.suspect == id)`, `(l.suspect == id)`},
	}},
	{"lost without end", "reclaim: lost too often in a row", []patch{
		{"reclaim", `if lost > tonumber(ARGV[3]) then`, `if false then`},
	}},
	{"one lost lease less", "reclaim: suspects are parked apart", []patch{
		{"reclaim", `if lost > tonumber(ARGV[3]) then`, `if lost >= 2 then`},
	}},
	{"a lost lease counts as a failure", "reclaim: to the retry stream, counted as lost", []patch{
		{"reclaim", `    local said
`, `    local said
    set.rc = int(onemore(field(f, 'rc')))
`},
	}},
	{"reclaim begins anew at each step", "reclaim: hundreds that cannot be moved do not stop those behind", []patch{
		{"reclaim", `src == stream and from or '-'`, `'-'`},
	}},
	{"reclaim in the retry stream begins with the main stream", "reclaim: hundreds that cannot be moved do not stop those behind", []patch{
		{"reclaim", `if src == 'm' and stream == 'r' then start = nil end`, ``},
	}},
	{"reclaim goes on behind what it did not look at", "reclaim: bounded in bytes, at least one entry", []patch{
		{"reclaim", `if budget <= 0 or bytes <= 0 then break end
        budget`, `start = after(p[1])
        if budget <= 0 or bytes <= 0 then break end
        budget`},
	}},
	{"reclaim without a byte budget", "reclaim: bounded in bytes, at least one entry", []patch{
		{"reclaim", `bytes = bytes - size(f)`, ``},
	}},
	{"reclaim says nothing of the deleted", "reclaim: deleted entries are counted, not lost silently", []patch{
		{"reclaim", `      return 'deleted ' .. id`, `      return nil`},
	}},
	{"reclaim of the main stream alone", "reclaim: to the retry stream, counted as lost", []patch{
		{"reclaim", `for _, src in ipairs({'m', 'r'}) do`, `for _, src in ipairs({'m'}) do`},
	}},
}
