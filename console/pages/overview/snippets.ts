import type { Model, Protocol } from '../../shapes';

/** The address and model of the call in a snippet. */
export interface Call {
  /** The gateway's public address, with the strategy if one is chosen. */
  readonly url: string;
  readonly model: Pick<Model, 'name' | 'protocols' | 'context' | 'maxOutput'>;
}

export interface Snippet {
  readonly name: string;
  /** The protocols of the snippet. It is offered for models with at least one of them. */
  readonly protocols: readonly [Protocol, ...Protocol[]];
  /** A remark for the user, shown beside the lines. */
  readonly note?: string;
  write(call: Call): string;
}

interface SnippetGroup {
  readonly name: string;
  readonly snippets: readonly [Snippet, ...Snippet[]];
}

/** The input of a call, as a literal in JSON, Python and TypeScript. */
interface Sent {
  readonly name: 'messages' | 'input';
  readonly json: string;
  readonly python: string;
  readonly typeScript: string;
}

const MESSAGES: Sent = {
  name: 'messages',
  json: '[{ "role": "user", "content": "Hello" }]',
  python: '[{"role": "user", "content": "Hello"}]',
  typeScript: "[{ role: 'user', content: 'Hello' }]",
};

const INPUT: Sent = { name: 'input', json: '"Hello"', python: '"Hello"', typeScript: "'Hello'" };

/** The groups of snippets: first calls, and the settings of agents. */
export const GROUPS: readonly [SnippetGroup, ...SnippetGroup[]] = [
  {
    name: 'Messages',
    snippets: [
      {
        name: 'curl',
        protocols: ['messages'],
        write: curl('messages', 'x-api-key: $TOLLGATE_API_KEY', MESSAGES, ['"max_tokens": 256']),
      },
      { name: 'Anthropic · Python', protocols: ['messages'], write: anthropicPython },
      { name: 'Anthropic · TypeScript', protocols: ['messages'], write: anthropicTypeScript },
    ],
  },
  openaiGroup('Chat', 'chat', {
    path: 'chat/completions',
    method: 'chat.completions.create',
    sent: MESSAGES,
    answer: 'completion',
    shown: 'choices[0].message.content',
  }),
  openaiGroup('Responses', 'responses', {
    path: 'responses',
    method: 'responses.create',
    sent: INPUT,
    answer: 'response',
    shown: 'output_text',
  }),
  openaiGroup('Embeddings', 'embeddings', {
    path: 'embeddings',
    method: 'embeddings.create',
    sent: INPUT,
    answer: 'embeddings',
    shown: 'data[0].embedding',
  }),
  {
    name: 'Agents',
    snippets: [
      { name: 'Claude Code', protocols: ['messages'], write: claudeCode },
      { name: 'Codex', protocols: ['responses'], note: 'Put these lines into ~/.codex/config.toml.', write: codex },
      {
        name: 'OpenCode',
        protocols: ['messages', 'responses', 'chat'],
        note: 'Put these lines into ~/.config/opencode/opencode.json.',
        write: opencode,
      },
      {
        name: 'Cursor',
        protocols: ['chat'],
        note: 'Cursor calls from its own servers, so the gateway must be reachable from the internet.',
        write: cursor,
      },
      { name: 'Cline', protocols: ['chat'], write: cline },
    ],
  },
];

/** An OpenAI SDK method, with its arguments, for one protocol. */
interface OpenaiCall {
  readonly path: string;
  readonly method: string;
  readonly sent: Sent;
  readonly answer: string;
  readonly shown: string;
}

function openaiGroup(name: string, protocol: Protocol, call: OpenaiCall): SnippetGroup {
  return {
    name,
    snippets: [
      {
        name: 'curl',
        protocols: [protocol],
        write: curl(call.path, 'authorization: Bearer $TOLLGATE_API_KEY', call.sent),
      },
      { name: 'OpenAI · Python', protocols: [protocol], write: openaiPython(call) },
      { name: 'OpenAI · TypeScript', protocols: [protocol], write: openaiTypeScript(call) },
    ],
  };
}

function curl(path: string, header: string, { name, json }: Sent, members: readonly string[] = []): Snippet['write'] {
  return ({ url, model }) => `curl ${url}/v1/${path} \\
  -H "${header}" \\
  -H "content-type: application/json" \\
  -d '{
    ${[`"model": "${model.name}"`, ...members, `"${name}": ${json}`].join(',\n    ')}
  }'`;
}

function anthropicPython({ url, model }: Call): string {
  return `import os
from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key=os.environ["TOLLGATE_API_KEY"])

message = client.messages.create(
    model="${model.name}",
    max_tokens=256,
    messages=${MESSAGES.python},
)
print(message.content)`;
}

function anthropicTypeScript({ url, model }: Call): string {
  return `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: '${url}', apiKey: process.env.TOLLGATE_API_KEY });

const message = await client.messages.create({
  model: '${model.name}',
  max_tokens: 256,
  messages: ${MESSAGES.typeScript},
});
console.log(message.content);`;
}

function openaiPython({ method, sent, answer, shown }: OpenaiCall): Snippet['write'] {
  return ({ url, model }) => `import os
from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key=os.environ["TOLLGATE_API_KEY"])

${answer} = client.${method}(
    model="${model.name}",
    ${sent.name}=${sent.python},
)
print(${answer}.${shown})`;
}

function openaiTypeScript({ method, sent, answer, shown }: OpenaiCall): Snippet['write'] {
  return ({ url, model }) => `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${url}/v1', apiKey: process.env.TOLLGATE_API_KEY });

const ${answer} = await client.${method}({
  model: '${model.name}',
  ${sent.name}: ${sent.typeScript},
});
console.log(${answer}.${shown});`;
}

/** Returns the settings that point Claude Code at the gateway, as in docs/clients.md. `npm run agents` tests those of Claude Code, Codex and OpenCode. */

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

/** The npm package that OpenCode uses for each protocol. */
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

function cline({ url, model }: Call): string {
  return `Settings, API Provider

API Provider   OpenAI Compatible
Base URL       ${url}/v1
API key        the API key
Model          ${model.name}`;
}
