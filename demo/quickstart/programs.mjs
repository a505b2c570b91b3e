/** Returns the settings that point agents and SDKs at the gateway, as in docs/clients.md. The variable KEY has the key. */
export function programs(url) {
  return `Point a program at it. A strategy stands behind the host, as in ${url}/cost:

  # Claude Code
  export ANTHROPIC_BASE_URL=${url}
  export ANTHROPIC_AUTH_TOKEN="$KEY"
  export ANTHROPIC_MODEL=demo-model

  # Codex: a variable, and in ~/.codex/config.toml
  export TOLLGATE_API_KEY="$KEY"
  model = "demo-model"
  model_provider = "tollgate"

  [model_providers.tollgate]
  name = "Tollgate"
  base_url = "${url}/v1"
  env_key = "TOLLGATE_API_KEY"
  wire_api = "responses"

  # OpenCode: a variable, and in ~/.config/opencode/opencode.json
  export TOLLGATE_API_KEY="$KEY"
  {
    "$schema": "https://opencode.ai/config.json",
    "model": "tollgate/demo-model",
    "provider": {
      "tollgate": {
        "npm": "@ai-sdk/anthropic",
        "options": { "baseURL": "${url}/v1", "apiKey": "{env:TOLLGATE_API_KEY}" },
        "models": {
          "demo-model": {
            "limit": { "context": 200000, "output": 8192 },
            "attachment": true,
            "modalities": { "input": ["text", "image"], "output": ["text"] }
          }
        }
      }
    }
  }

  # Cline: Settings, API Provider: OpenAI Compatible, base URL ${url}/v1, the API key, model demo-model
  # Cursor: Settings, Models, API Keys: Override OpenAI Base URL; it calls from the internet, so not this address

  # Anthropic SDK (the quick start takes ANTHROPIC_API_KEY for the vendor's key: start it in another shell)
  export ANTHROPIC_BASE_URL=${url}
  export ANTHROPIC_API_KEY="$KEY"

  # OpenAI SDK (the same holds for OPENAI_API_KEY)
  export OPENAI_BASE_URL=${url}/v1
  export OPENAI_API_KEY="$KEY"
`;
}
