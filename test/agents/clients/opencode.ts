import type { ProgramEnd } from '../../support/agents';
import { platformProgram } from '../../support/agents';
import { object } from '../vendor/json';
import { type Client, call, jsonLines, type Outcome, type Point } from './client';

/** Returns OpenCode with one of its providers. It has one for each protocol, in the same program with the same features. */
function opencode(protocol: 'Messages' | 'Chat' | 'Responses', npm: string, model: string): Client {
  return {
    id: `opencode-${protocol.toLowerCase()}`,
    title: 'OpenCode',
    kind: 'agent',
    packages: ['opencode-ai'],
    protocol,
    model,
    setup: (point) => ({
      env: { TOLLGATE_API_KEY: point.key },
      files: { '.config/opencode/opencode.json': configuration(npm, point) },
    }),
    command: ({ feature, prompt }) => ({
      program: platformProgram('opencode', 'bin/opencode'),
      args: [
        'run',
        '--format',
        'json',
        '--auto',
        ...(feature === 'reasoning' ? ['--thinking'] : []),
        prompt,
        ...(feature === 'images' ? ['--file', 'image.png'] : []),
      ],
      env: QUIET,
    }),
    read: readEvents,
    tools: { read: (path) => call('read', { filePath: path }), seesByItself: true },
    isConversation: ({ tools }) => tools.length > 0,
    retries: true,
    lacks: {
      'deferred tools': 'it has none',
      'web search': 'its search asks a service of its own, not the vendor',
      'model list': 'models stand in its configuration',
    },
  };
}

export const opencodeMessages = opencode('Messages', '@ai-sdk/anthropic', 'claude-sonnet-5-5');
export const opencodeChat = opencode('Chat', '@ai-sdk/openai-compatible', 'gpt-5.5');
export const opencodeResponses = opencode('Responses', '@ai-sdk/openai', 'gpt-5.5');

const QUIET = {
  OPENCODE_DISABLE_AUTOUPDATE: '1',
  OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
};

function configuration(npm: string, { url, model }: Point): string {
  return `{
  "$schema": "https://opencode.ai/config.json",
  "model": "tollgate/${model}",
  "provider": {
    "tollgate": {
      "npm": "${npm}",
      "options": { "baseURL": "${url}/v1", "apiKey": "{env:TOLLGATE_API_KEY}" },
      "models": {
        "${model}": {
          "limit": { "context": 200000, "output": 32000 },
          "attachment": true,
          "modalities": { "input": ["text", "image"], "output": ["text"] }
        }
      }
    }
  }
}
`;
}

function readEvents(end: ProgramEnd): Outcome {
  const events = jsonLines(end).map(object);
  const parts = events.map((event) => object(event['part']));
  const tokens = parts.flatMap((part) => (part['type'] === 'step-finish' ? [object(part['tokens'])] : []));
  const sum = (count: (each: (typeof tokens)[number]) => number) =>
    tokens.reduce((total, each) => total + count(each), 0);
  const textsOf = (kind: string) => parts.filter(({ type }) => type === kind).map(({ text }) => String(text));
  const last = events.findLast(({ type }) => type === 'error' || type === 'step_finish')?.['type'];
  return {
    // OpenCode exits with 1 even after an error from which it has recovered.
    succeeded: last === 'step_finish',
    text: textsOf('text').at(-1) ?? '',
    thoughts: textsOf('reasoning').join('\n'),
    usage: {
      input: sum((each) => {
        const cache = object(each['cache']);
        return Number(each['input']) + Number(cache['read'] ?? 0) + Number(cache['write'] ?? 0);
      }),
      output: sum((each) => Number(each['output']) + Number(each['reasoning'] ?? 0)),
    },
  };
}
