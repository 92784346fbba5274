"""`aiohttp_proxy.py UPSTREAM`: a plain proxy on aiohttp that parses JSON to mend it, on uvloop.

Prints {"url": ...} when it listens, as our proxy does. Started by bench.model_proxy with the
Python of `.peers/verifiers-0.2`, which has aiohttp; it needs nothing else of this project.
"""

import asyncio
import json
import sys

import aiohttp
import uvloop
from aiohttp import web

UNKEPT = {"host", "connection", "keep-alive", "transfer-encoding", "content-length"}
JSON = {"ensure_ascii": False, "separators": (",", ":")}


def mended(body: bytes) -> bytes:
    """The request with "" where an assistant's content is null; the same bytes if none is."""
    if b'"content":null' not in body:
        return body
    request = json.loads(body)
    for message in request["messages"]:
        if message["role"] == "assistant" and message["content"] is None:
            message["content"] = ""
    return json.dumps(request, **JSON).encode()


async def serve(upstream: str) -> None:
    async def forward(request: web.Request) -> web.StreamResponse:
        body = mended(await request.read())
        headers = [(name, value) for name, value in request.headers.items() if kept(name)]
        url = upstream + request.raw_path
        async with client.request(request.method, url, data=body, headers=headers) as answer:
            headers = [(name, value) for name, value in answer.headers.items() if kept(name)]
            response = web.StreamResponse(status=answer.status, headers=headers)
            response.content_length = answer.content_length
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as client:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}), flush=True)
        await asyncio.Event().wait()


def kept(name: str) -> bool:
    return name.lower() not in UNKEPT


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
