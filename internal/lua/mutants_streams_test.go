package lua

var streamMutants = []mutant{
	{"promote: ahead of its time", "promote: what is due, in order of its due time", []patch{
		{"promote", `KEYS[1], '-inf', int(t), 'WITHSCORES'`, `KEYS[1], '-inf', '+inf', 'WITHSCORES'`},
	}},
	{"promote: the id of a delayed message is lost", "promote: delayed messages keep the id they were given", []patch{
		{"promote", `if group == '' and string.sub(member, 1, 2) == 'd-' then`, `if false then`},
	}},
	{"promote: when a delayed message was due is lost", "promote: a delayed message tells when it was due", []patch{
		{"promote", `, due = int(tonumber(at))}`, `}`},
	}},
	{"promote: a delayed message is due when it is moved", "promote: a delayed message tells when it was due", []patch{
		{"promote", `due = int(tonumber(at))`, `due = int(t)`},
	}},
	{"promote: every member becomes an id", "promote: delayed messages keep the id they were given", []patch{
		{"promote", `if group == '' and string.sub(member, 1, 2) == 'd-' then`, `if group == '' then`},
	}},
	{"promote: what cannot be read is dropped", "promote: values that cannot be read go to the dead letters raw", []patch{
		{"promote", `      local id = append(KEYS[4], {'raw', v, 'member', member, 'reason', 'malformed'})`, `      local id = '0-0'`},
	}},
	{"promote: half a value passes", "promote: values that cannot be read go to the dead letters raw", []patch{
		{"lib", `if n == 0 or n % 2 == 1 then return nil end`, `if n % 2 == 1 then out[n] = nil end if n < 2 then return nil end`},
	}},
	{"promote: any version passes", "promote: values that cannot be read go to the dead letters raw", []patch{
		{"lib", `if string.byte(s, 1) ~= 1 then return nil end`, ``},
	}},
	{"promote: members without a value stay", "promote: members without a value, values without a member", []patch{
		{"promote", `      redis.call('ZREM', KEYS[1], member)
      missing = missing + 1`, `      missing = missing + 1`},
	}},
	{"promote: never pauses", "promote: pauses while plenty is unread", []patch{
		{"promote", `if waiting > 2000 and not held then`, `if false then`},
	}},
	{"promote: goes on at once", "promote: pauses while plenty is unread", []patch{
		{"promote", `elseif waiting < 1000 and held then`, `elseif waiting <= 2000 and held then`},
	}},
	{"promote: what is pending counts as unread", "promote: pauses while plenty is unread", []patch{
		{"promote", `- tonumber(p[1])`, ``},
	}},
	{"promote: without a bound", "promote: bounded in entries", []patch{
		{"promote", `      limit = limit - 1
`, ``},
	}},
	{"promote: without a byte budget", "promote: bounded in bytes, at least one entry", []patch{
		{"promote", `bytes = bytes - #v`, ``},
	}},
	{"promote: what cannot be moved stays due", "promote: hundreds that cannot be moved do not stop those behind", []patch{
		{"promote", `redis.pcall('ZADD', KEYS[1], 'XX', int(t + 60000), member)`, `{err = 'no'}`},
	}},
	{"promote: what cannot be moved is not tried again", "promote: hundreds that cannot be moved do not stop those behind", []patch{
		{"promote", `redis.pcall('ZADD', KEYS[1], 'XX', int(t + 60000), member)`, `redis.pcall('ZREM', KEYS[1], member)`},
	}},
	{"janitor: orphans wait", "janitor: orphans become due now", []patch{
		{"janitor", `int(now())`, `int(now() + 60000)`},
	}},
	{"janitor: as many large values as small ones", "janitor: large values, few at a time", []patch{
		{"lib", `local ask = 1
`, `local ask = limit
`},
		{"lib", `got = got + #r[2][i + 1]`, ``},
	}},
	{"janitor: dues are moved", "janitor: orphans become due now", []patch{
		{"janitor", `if not redis.call('ZSCORE', KEYS[1], member) then`, `do`},
	}},
	{"publish: no look for the marker", "publish: deduplicated", []patch{
		{"publish", `return {id, 1}`, ``},
	}},
	{"publish: a marker for ever", "publish: deduplicated", []patch{
		{"publish", `redis.pcall('SET', KEYS[4], id, 'PX', ARGV[1])`, `redis.pcall('SET', KEYS[4], id)`},
	}},
	{"publish: an entry without its marker", "publish: a marker that is refused leaves nothing", []patch{
		{"publish", `redis.call('XDEL', KEYS[1], id)`, ``},
	}},
	{"publish: a parked message without its marker", "publish: a marker that is refused leaves nothing", []patch{
		{"publish", `redis.call('HDEL', KEYS[3], id)`, ``},
	}},
	{"publish: the past is parked", "publish: at a time to come, at one that is past", []patch{
		{"publish", `if at > t then
    id`, `if at > 0 then
    id`},
	}},
	{"group recreated at $", "group: a vanished one is made again where it stood", []patch{
		{"group", `what, at = 'remade', pos`, `what, at = 'remade', '$'`},
	}},
	{"group recreated at $ where nothing is recorded", "group: made again at the head where nothing is recorded", []patch{
		{"group", `what, at = 'remade', '0'`, `what, at = 'remade', '$'`},
	}},
	{"group recreated at a position of another stream", "group: made again at the head where the stream was replaced", []patch{
		{"group", `if compare(newest, pos) < 0 then at = '0' end`, ``},
	}},
	{"group: recorded at its last delivered", "group: one that others made is recorded by what it needs", []patch{
		{"group", `position(KEYS[1], g)`, `g.last`},
	}},
	{"group: a tombstone is ignored", "group: a tombstone ends an older subscription, a new start is told", []patch{
		{"group", `if removed and ARGV[3] == 'again' then`, `if false then`},
	}},
	{"group: any format will do", "group: a newer format is refused", []patch{
		{"group", `if major and major > tonumber(ARGV[4]) then`, `if false then`},
	}},
	{"group: formats compare as texts", "group: a newer format is refused", []patch{
		{"group", `if major and major > tonumber(ARGV[4]) then`, `if major and meta[1] > ARGV[4] then`},
	}},
	{"group: the history others rely on is not kept", "group: the first of ours on an old stream keeps its history", []patch{
		{"group", `tonumber((split(first[1]))) < t - 3600000 then`, `false then`},
	}},
	{"group: the history before a tail is not kept", "group: the first of ours at the tail keeps the history", []patch{
		{"group", `if at == '$' or first and`, `if first and`},
	}},
	{"group: decided again by each group", "group: the second of ours decides nothing", []patch{
		{"group", `if string.sub(v, 1, 1) ~= 'x' then return end`, ``},
	}},
	{"group: a decided retention is written over", "group: retention that was decided stays, an option writes it", []patch{
		{"group", `if meta[2] then return end`, ``},
	}},
	{"group: no retry group beside one that exists", "group: a lost retry group is made again", []patch{
		{"group", `      make(KEYS[2], '0')
      return {'exists', g.last}`, `      return {'exists', g.last}`},
	}},
	{"compaction with a recorded group missing", "compact: a recorded group that is missing holds all", []patch{
		{"compact", `if not there[flat[i]] then`, `if false then`},
	}},
	{"oldest pending else last delivered", "compact: a group that was moved back under what it has pending", []patch{
		{"lib", `if p[2] and (not first or compare(p[2], first) < 0) then first = p[2] end`, `if p[2] then first = p[2] end`},
	}},
	{"last delivered alone", "compact: the oldest pending entry holds what is above it", []patch{
		{"lib", `if g.pending and g.pending > 0 then`, `if false then`},
	}},
	{"floor from an earlier step", "compact: what was read after one look is not trimmed by the next", []patch{
		{"compact", `  local limit = tonumber(ARGV[1])
`, `  local limit = tonumber(ARGV[1])
  local earlier = redis.call('GET', KEYS[3] .. '.floor')
  redis.call('SET', KEYS[3] .. '.floor', floor)
  floor = earlier or floor
`},
	}},
	{"floor of our own groups", "compact: a foreign group that never read holds all", []patch{
		{"compact", `    local n = need(KEYS[1], g) or last
`, `    local n = need(KEYS[1], g) or last
    if not redis.call('HGET', KEYS[2], g.name) then n = '18446744073709551615-0' end
`},
	}},
	{"compaction right after a group was made", "compact: not soon after a group was made", []patch{
		{"compact", `if ARGV[3] ~= 'now' and math.abs(t - newest) < 300000`, `if false and math.abs(t - newest) < 300000`},
	}},
	{"compaction waits for a clock that was set back", "compact: made by a clock that was set back since", []patch{
		{"compact", `math.abs(t - newest) < 300000`, `t - newest < 300000`},
	}},
	{"walks in steps as large as all before were small", "walks: bounded in bytes behind small ones", []patch{
		{"lib", `local STEP = 8 `, `local STEP = 100 `},
	}},
	{"compaction waits however much there is", "compact: soon after all, when there is much", []patch{
		{"compact", `redis.call('XLEN', KEYS[1]) < 100000 then`, `true then`},
	}},
	{"a window that ends with the last entry is followed by the first", "compact: a pinned floor with as many entries as a step looks at", []patch{
		{"compact", `through = through or compare(stood, ceiling) >= 0`, ``},
	}},
	{"compaction although for ever", "compact: for ever", []patch{
		{"compact", `if retain == 'forever' then`, `if false then`},
	}},
	{"compaction ignores retention by time", "compact: retention by time", []patch{
		{"compact", `if keep > 0 then`, `if false then`},
	}},
	{"retention holds below the floor alone", "compact: retention holds above a pinned floor too", []patch{
		{"compact", `if compare(young, ceiling) < 0 then ceiling = young end`, ``},
	}},
	{"retention trims what is needed", "compact: retention does not let go what a group needs", []patch{
		{"compact", `if compare(young, floor) < 0 then floor, holders = young, {} end`, `floor, holders = young, {}`},
	}},
	{"above the floor: what is pending", "compact: above a pinned floor only what no group needs", []patch{
		{"compact", `if not busy[id] then ids`, `do ids`},
	}},
	{"above the floor: what is unread", "compact: above a pinned floor only what no group needs", []patch{
		{"compact", `if not ceiling or compare(top, ceiling) < 0 then ceiling = top end`, `if not ceiling or compare(top, ceiling) > 0 then ceiling = top end`},
	}},
	{"above the floor: without a bound", "compact: above a pinned floor in bounded steps to the end", []patch{
		{"compact", `100, 262144, function`, `99999, 262144000, function`},
	}},
	{"above the floor: always from the floor", "compact: above a pinned floor in bounded steps to the end", []patch{
		{"compact", `through and floor or stood)`, `floor)`},
	}},
	{"above the floor: a walk after the other", "compact: a large walk above a pinned floor is not begun again at once", []patch{
		{"compact", `if from == floor and length >= 1000`, `if false`},
	}},
	{"above the floor: never again", "compact: a large walk above a pinned floor is not begun again at once", []patch{
		{"compact", `if had and length * 2 < had * 3 and math.abs(t - at) < 600000 then`, `if had then`},
	}},
	{"above the floor: not by hand either", "compact: a large walk above a pinned floor is not begun again at once", []patch{
		{"compact", ` and ARGV[3] ~= 'now' then
      local had`, ` then
      local had`},
	}},
	{"a look that trims", "compact: all that every group is done with", []patch{
		{"compact", `if ARGV[2] == 'dry' then
    local n`, `if false then
    local n`},
	}},
	{"ids compare as numbers", "ids: two that are one as numbers", []patch{
		{"lib", `  if #a ~= #b then return #a < #b and -1 or 1 end
  if a == b then return 0 end
  return a < b and -1 or 1`, `  a, b = tonumber(a), tonumber(b)
  if a == b then return 0 end
  return a < b and -1 or 1`},
	}},
	{"ids compare as texts", "ids: more digits are more, whatever the first", []patch{
		{"lib", `  if #a ~= #b then return #a < #b and -1 or 1 end
`, ``},
	}},
	{"the id before is one less", "ids: recorded positions step down", []patch{
		{"lib", `  if s then return ms .. '-' .. s end
`, `  if true then return ms .. '-' .. (s or '0') end
`},
	}},
	{"the id after is a number", "ids: the floor at the end of all ids", []patch{
		{"lib", `  return ms .. '-' .. step(seq, true)`, `  return ms .. '-' .. int(tonumber(seq) + 1)`},
	}},
	{"the last possible id is followed by itself", "ids: nothing is behind the last possible one", []patch{
		{"lib", `ms ~= LAST and step(ms, true) .. '-0' or nil end`, `ms ~= LAST and step(ms, true) .. '-0' or id end`},
	}},
	{"retention longer than the clock runs", "compact: retention from before all time", []patch{
		{"compact", `keep < t and int(t - keep) .. '-0' or '0-1'`, `int(math.max(0, t - keep)) .. '-0'`},
	}},
	{"redrive keeps the counters", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `{rc = false, lost = false, losses = false, cut = false, reason = false}`, `{reason = false}`},
	}},
	{"redrive forgets the error", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `cut = false, reason = false}`, `cut = false, reason = false, err = false}`},
	}},
	{"redrive of what is too old at once", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `int(onemore(field(f, 'redriven'))), int(t)`, `int(onemore(field(f, 'redriven')))`},
	}},
	{"redrive anew keeps the time it was due", "redrive: anew, to all groups", []patch{
		{"redrive", `set.redriven, set.due, set.from = false, false, false, false, stable`, `set.redriven, set.from = false, false, false, stable`},
	}},
	{"redrive leaves the marker", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `redis.call('DEL', seen)`, ``},
	}},
	{"redrive to all groups", "redrive: for its own group, counters at 0", []patch{
		{"redrive", `    if anew then
      set.oid`, `    if true then
      set.oid`},
	}},
	{"redrive anew under the old id", "redrive: anew, to all groups", []patch{
		{"redrive", `set.oid, set.err, set.redriven, set.due, set.from = false,`, `set.oid, set.err, set.redriven, set.due, set.from = stable(f, id),`},
	}},
	{"redrive of what has no body", "redrive: what has no body cannot", []patch{
		{"redrive", `if not field(f, 'body') then return 'unredrivable' end`, ``},
	}},
	{"redrive for a group that does not exist", "redrive: a group that does not exist", []patch{
		{"redrive", `if not anew and (not mark or string.sub(mark, 1, 1) == 'x') then`, `if false then`},
	}},
	{"redrive edits every body", "redrive: with another body", []patch{
		{"redrive", `if f[i] == 'body' and not done then`, `if f[i] == 'body' then`},
	}},
	{"purge leaves the dedupe id", "purge: deletes, and frees dedupe ids that name the message", []patch{
		{"purge", `then redis.call('DEL', sent) end`, `then n = n + 0 end`},
	}},
	{"purge frees any dedupe id", "purge: deletes, and frees dedupe ids that name the message", []patch{
		{"purge", `and redis.pcall('GET', sent) == ARGV[i + 1] then`, `then`},
	}},
	{"cancel frees any dedupe id", "cancel: a delayed message and its marker", []patch{
		{"cancel", `and redis.pcall('GET', KEYS[3]) == ARGV[1] then`, `then`},
	}},
	{"a group removed with its dead letters", "drop: never while it has dead letters", []patch{
		{"drop", `if dead > 0 or ARGV[2]`, `if ARGV[2]`},
	}},
	{"a group removed with what waits", "drop: each thing it holds is a reason not to, but for force", []patch{
		{"drop", `pending + retry + parked + lag > 0 then`, `pending + retry + parked > 0 then`},
	}},
	{"a group removed without a tombstone", "drop: holds nothing", []patch{
		{"drop", `redis.call('HSET', KEYS[6], group, 'x|' .. int(now()))`, `redis.call('HDEL', KEYS[6], group)`},
	}},
	{"seek with entries pending", "seek: refused while entries are pending", []patch{
		{"seek", `if g.pending > 0 then return {'pending', ''} end`, ``},
	}},
	{"seek to history that is gone", "seek: history that is gone", []patch{
		{"seek", `if compare(at, info['last-generated-id']) < 0 then`, `if false then`},
	}},
	{"seek without a record", "seek: head, tail, behind an id", []patch{
		{"seek", `redis.call('HSET', KEYS[2], group,`, `string.format('%s%s',  group,`},
	}},
	{"find by bytes in a body", "find: by the stable id, in parked values", []patch{
		{"find", `if not f or stable(f, '') ~= id then`, `if not f then`},
	}},
}
