-- Asks quotad whether a request may pass, for haproxy.cfg.
local url = "http://127.0.0.1/v1/authz"
local socket = "abns@quotad" -- of "listen quotad", which has the nodes' addresses and the timeouts
local timeout = 100 -- milliseconds, in case that HAProxy itself does not answer

-- What a denied client sees of quotad's answer.
local shown = {"content-type", "retry-after", "ratelimit", "ratelimit-policy", "cache-control"}

local function ask(txn)
    -- Only these headers reach quotad, and none of the client's. Add those that your mapping reads,
    -- such as: ["cookie"] = {txn.sf:req_hdr("cookie")}
    local headers = {
        ["x-forwarded-method"] = {txn.sf:method()},
        ["x-forwarded-uri"] = {txn.sf:pathq()},
        ["x-forwarded-host"] = {txn.sf:req_hdr("host")},
        ["x-forwarded-for"] = {txn.sf:src()},
        ["x-account"] = {txn:get_var("txn.account") or ""},
        -- ["authorization"] = {"Bearer TOKEN"}, -- if the node has roles
    }
    return core.httpclient():get{url = url, dst = socket, headers = headers, timeout = timeout}
end

core.register_action("quotad", {"http-req"}, function(txn)
    local answer = ask(txn)
    local function header(name)
        local all = answer.headers and answer.headers[name]
        return all and all[0]
    end
    if answer.status == 200 then
        txn:set_var("txn.ratelimit", header("ratelimit"))
        txn:set_var("txn.policy", header("ratelimit-policy"))
    elseif header("content-type") == "application/problem+json" then -- quotad says no
        local reply = txn:reply{status = answer.status, body = answer.body}
        for _, name in ipairs(shown) do
            if header(name) then
                reply:add_header(name, header(name))
            end
        end
        txn:done(reply)
    else -- HAProxy itself says that nobody answered
        txn:set_var("txn.quotad_down", true)
    end
end)
