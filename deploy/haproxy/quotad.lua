-- Asks quotad whether a request may pass, for haproxy.cfg.
local url = "http://127.0.0.1/v1/authz"
local socket = "abns@quotad" -- of "listen quotad", which has the nodes' addresses and the timeouts
local timeout = 5000 -- milliseconds, in case that HAProxy itself does not answer

-- What a denied client sees of quotad's answer.
local shown = {"content-type", "retry-after", "ratelimit", "ratelimit-policy", "cache-control"}

-- Marks a request as odd if a text from its client is longer than most bytes, or has control bytes,
-- which quotad would not read.
local function bounded(txn, text, most)
    if #text > most or text:find("[%z\1-\31\127]") then
        txn.odd = true
    end
    return text
end

local function ask(txn)
    -- Only these headers reach quotad, and none of the client's. quotad takes 16 kB of them. Add
    -- those that your mapping reads, such as the cookie below.
    local headers = {
        ["x-forwarded-method"] = {bounded(txn, txn.sf:method(), 32)},
        ["x-forwarded-uri"] = {bounded(txn, txn.sf:pathq(), 8000)},
        ["x-forwarded-host"] = {bounded(txn, txn.sf:req_fhdr("host"), 255)},
        ["x-forwarded-for"] = {txn.sf:src()},
        ["x-account"] = {txn:get_var("txn.account") or ""},
        -- ["cookie"] = {bounded(txn, txn.sf:req_fhdr("cookie"), 4000)},
        -- ["authorization"] = {"Bearer TOKEN"}, -- if the node has roles
    }
    if txn.odd then
        return {status = 400}
    end
    return core.httpclient():get{url = url, dst = socket, headers = headers, timeout = timeout}
end

-- Decodes a path and takes "//", "." and ".." out of it, as quotad does.
local function plain(path)
    local kept = {}
    path = path:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
    for segment in path:gmatch("[^/]+") do
        if segment == ".." then
            table.remove(kept)
        elseif segment ~= "." then
            table.insert(kept, segment)
        end
    end
    return "/" .. table.concat(kept, "/")
end

core.register_action("quotad", {"http-req"}, function(txn)
    local answer = ask(txn)
    local function header(name)
        local all = answer.headers and answer.headers[name]
        return all and all[0]
    end
    local silent = not header("x-quotad-answered") and (answer.status == 503 or answer.status == 504)
    if answer.status == 200 then
        txn:set_var("txn.decided", true)
        txn:set_var("txn.ratelimit", header("ratelimit"))
        txn:set_var("txn.policy", header("ratelimit-policy"))
    elseif silent or answer.status == 503 and header("quotad-undecided") then
        txn:set_var("txn.undecided", true)
        txn:set_var("txn.path", plain(txn.sf:path()))
    else -- quotad says no, or what it says is no decision
        local refuses = answer.status and answer.status >= 400
        local reply = txn:reply{status = refuses and answer.status or 503, body = answer.body}
        for _, name in ipairs(shown) do
            if header(name) then
                reply:add_header(name, header(name))
            end
        end
        txn:done(reply)
    end
end)
