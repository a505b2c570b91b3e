/** First calls, in the words of those who make them. */

export const SNIPPETS = {
  curl: { name: 'curl', protocol: 'messages', write: curl },
  'anthropic-python': { name: 'Anthropic · Python', protocol: 'messages', write: anthropicPython },
  'anthropic-typescript': { name: 'Anthropic · TypeScript', protocol: 'messages', write: anthropicTypeScript },
  'openai-python': { name: 'OpenAI · Python', protocol: 'chat', write: openaiPython },
  'openai-typescript': { name: 'OpenAI · TypeScript', protocol: 'chat', write: openaiTypeScript },
} as const;

export type Way = keyof typeof SNIPPETS;

export function snippetOf(way: Way, url: string, model: string): string {
  return SNIPPETS[way].write(url, model);
}

function curl(url: string, model: string): string {
  return `curl ${url}/v1/messages \\
  -H "x-api-key: $TOLLGATE_API_KEY" \\
  -H "content-type: application/json" \\
  -d '{
    "model": "${model}",
    "max_tokens": 256,
    "messages": [{ "role": "user", "content": "Hello" }]
  }'`;
}

function anthropicPython(url: string, model: string): string {
  return `import os
from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key=os.environ["TOLLGATE_API_KEY"])

message = client.messages.create(
    model="${model}",
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello"}],
)
print(message.content)`;
}

function anthropicTypeScript(url: string, model: string): string {
  return `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: '${url}', apiKey: process.env.TOLLGATE_API_KEY });

const message = await client.messages.create({
  model: '${model}',
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(message.content);`;
}

function openaiPython(url: string, model: string): string {
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key=os.environ["TOLLGATE_API_KEY"])

completion = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(completion.choices[0].message.content)`;
}

function openaiTypeScript(url: string, model: string): string {
  return `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${url}/v1', apiKey: process.env.TOLLGATE_API_KEY });

const completion = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(completion.choices[0].message.content);`;
}
