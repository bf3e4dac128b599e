# form: https://docs.sglang.ai/basic_usage/send_request.html
#!/bin/sh
exec sglang serve --model-path Qwen/Qwen3-8B --host 127.0.0.1 --port 30000 --reasoning-parser qwen3
