const REAL_UPSTREAMS = ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'];

/** Returns the text that is printed when everything runs: the key, and commands to paste. */
export function guide({ url, adminUrl, account, env }) {
  const { key, link, file, isNew } = account;
  const setKey = isNew ? `KEY=${key}` : `KEY=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).key' '${file}')`;
  return `
Tollgate is ready.

  calls    ${url}
  console  ${link}
           signs you in once, within an hour; start again for another
  admin    ${adminUrl}  (token: ADMIN_TOKEN, or the file admin-token in the data folder)
  API key  ${isNew ? `${key}\n           kept for the next start in ${file}` : `as at the first start, in ${file}`}

Set the key, then paste any of these:

  ${setKey}

  # Messages protocol, in one piece (-i shows cost, tokens and route in the headers)
  ${curl(url, '/v1/messages', 'x-api-key: $KEY', { model: 'demo-model', max_tokens: 200, messages: HELLO }, '-i')}

  # Messages protocol, streamed
  ${curl(url, '/v1/messages', 'x-api-key: $KEY', { model: 'demo-model', max_tokens: 200, stream: true, messages: HELLO }, '-N')}

  # Chat protocol, in one piece
  ${curl(url, '/v1/chat/completions', 'Authorization: Bearer $KEY', { model: 'demo-model', messages: HELLO }, '-i')}

  # Chat protocol, streamed
  ${curl(url, '/v1/chat/completions', 'Authorization: Bearer $KEY', { model: 'demo-model', stream: true, messages: HELLO }, '-N')}

  # Responses protocol, in one piece
  ${curl(url, '/v1/responses', 'Authorization: Bearer $KEY', { model: 'demo-model', input: 'Hello', store: false }, '-i')}

  # Embeddings
  ${curl(url, '/v1/embeddings', 'Authorization: Bearer $KEY', { model: 'demo-embedding', input: ['Hello', 'Good morning'] }, '-i')}

  # By a strategy, which stands before /v1: quality (as without one), speed or cost
  ${curl(url, '/cost/v1/chat/completions', 'Authorization: Bearer $KEY', { model: 'demo-model', messages: HELLO }, '-i')}

  # A sandbox: made, used, ended. It costs by the second, so end it.
  ID=$(${curl(url, '/v1/sandboxes', 'x-api-key: $KEY', CREATION)} | node -p 'JSON.parse(fs.readFileSync(0)).id')
  curl -s "${url}/v1/sandboxes/$ID?waitFor=RUNNING,FAILED" -H "x-api-key: $KEY"
  ${curl(url, '/v1/sandboxes/$ID/commands', 'x-api-key: $KEY', { command: 'echo hello from inside | tee note' })}
  curl -s "${url}/v1/sandboxes/$ID/files?path=note" -H "x-api-key: $KEY"
  curl -s -X POST ${url}/v1/sandboxes/$ID/terminate -H "x-api-key: $KEY"
  curl -s "${url}/v1/sandboxes/$ID?waitFor=TERMINATED" -H "x-api-key: $KEY"
  curl -s ${url}/v1/offerings -H "x-api-key: $KEY"

  # What is left, and what each call cost
  curl -s ${url}/v1/balance -H "x-api-key: $KEY"
  curl -s ${url}/v1/usage -H "x-api-key: $KEY"

${programs(url)}
Upstreams: the demo upstream (no real model behind it)${REAL_UPSTREAMS.map((name) => `, ${named(name, env)}`).join('')}.
${hint(env)}Models, prices and routes stand in gateway.config.yml: edit it next.

Ctrl-C ends both programs.
`;
}

const HELLO = [{ role: 'user', content: 'Hello' }];

const CREATION = {
  selection: { requirements: { capabilities: ['exec', 'files'] } },
  idempotencyKey: `quickstart-${Date.now()}`,
};

function curl(url, path, header, body, ...flags) {
  return `${['curl -s', ...flags, url + path].join(' ')} -H "${header}" -H 'content-type: application/json' \\
    -d '${JSON.stringify(body)}'`;
}

function named(name, env) {
  return `${name} is ${env[name] ? 'set: live' : 'not set'}`;
}

function hint(env) {
  return REAL_UPSTREAMS.some((name) => env[name]) ? '' : 'To call real models, set one of these and start again. ';
}

/** Returns the settings that point agents and SDKs at the gateway, as in docs/clients.md. The variable KEY has the key. */
function programs(url) {
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
