"""Makes one call of a server of health checks, with a plain retry policy that by itself waits for a
minute. Prints the code, the seconds that it took and the pushback that the last answer had."""
import json
import sys
import time

import grpc

POLICY = {"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 3, "initialBackoff": "60s", "maxBackoff": "60s", "backoffMultiplier": 1,
    "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}

with grpc.insecure_channel(sys.argv[1], options=[
        ("grpc.enable_retries", 1), ("grpc.service_config", json.dumps(POLICY))]) as channel:
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    begun = time.monotonic()
    try:
        _, call = check.with_call(b"", timeout=50)
    except grpc.RpcError as error:
        call = error
    took = time.monotonic() - begun
    trailer = dict(call.trailing_metadata() or ())
    print(call.code().name, took, trailer.get("grpc-retry-pushback-ms", "none"))
