import type { Call } from './snippets';

/** The settings that point agents at the gateway, as in docs/clients.md. `npm run agents` tries those of Claude Code, Codex and OpenCode. */

export function claudeCode({ url, model }: Call): string {
  return `export ANTHROPIC_BASE_URL=${url}
export ANTHROPIC_AUTH_TOKEN="$TOLLGATE_API_KEY"
export ANTHROPIC_MODEL=${model.name}`;
}

export function codex({ url, model }: Call): string {
  return `model = "${model.name}"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${url}/v1"
env_key = "TOLLGATE_API_KEY"
wire_api = "responses"`;
}

/** OpenCode's package for each protocol. */
const OPENCODE_PACKAGES = {
  messages: '@ai-sdk/anthropic',
  chat: '@ai-sdk/openai-compatible',
  responses: '@ai-sdk/openai',
} as const;

export function opencode({ url, model: { name, protocols, context, maxOutput } }: Call): string {
  const protocol = (['messages', 'responses', 'chat'] as const).find((each) => protocols.includes(each)) ?? 'chat';
  return `{
  "$schema": "https://opencode.ai/config.json",
  "model": "tollgate/${name}",
  "provider": {
    "tollgate": {
      "npm": "${OPENCODE_PACKAGES[protocol]}",
      "options": { "baseURL": "${url}/v1", "apiKey": "{env:TOLLGATE_API_KEY}" },
      "models": {
        "${name}": {
          "limit": { "context": ${context}, "output": ${maxOutput} },
          "attachment": true,
          "modalities": { "input": ["text", "image"], "output": ["text"] }
        }
      }
    }
  }
}`;
}

export function cursor({ url, model }: Call): string {
  return `Settings, Models, API Keys

Override OpenAI Base URL   ${url}/v1
OpenAI API key             the API key
Model                      ${model.name}`;
}

export function cline({ url, model }: Call): string {
  return `Settings, API Provider

API Provider   OpenAI Compatible
Base URL       ${url}/v1
API key        the API key
Model          ${model.name}`;
}
