import { join } from 'node:path';
import { AGENT_PACKAGES, type ProgramEnd } from '../../support/agents';
import { object } from '../vendor/json';
import { bodyText, type Client, call, isFound, isTold, jsonLines, type Outcome } from './client';

export const codex: Client = {
  id: 'codex',
  title: 'Codex',
  kind: 'agent',
  packages: ['@openai/codex'],
  protocol: 'Responses',
  model: 'gpt-5.5',
  setup: ({ url, key, model }) => ({
    env: { TOLLGATE_API_KEY: key },
    files: {
      '.codex/config.toml': [
        `model = "${model}"`,
        'model_provider = "tollgate"',
        '',
        '[model_providers.tollgate]',
        'name = "Tollgate"',
        `base_url = "${url}/v1"`,
        'env_key = "TOLLGATE_API_KEY"',
        'wire_api = "responses"',
        '',
      ].join('\n'),
    },
  }),
  command: ({ feature, prompt, isTranslated = false }) => ({
    program: join(AGENT_PACKAGES, '.bin/codex'),
    args: [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      ...(isTranslated ? ['-c', 'web_search="disabled"'] : []),
      ...(feature === 'images' ? ['--image', 'image.png', '--'] : []),
      prompt,
    ],
    env: {},
  }),
  read: readEvents,
  note: 'Codex offers the model a web search in every call. The vendor may then read the context window once more, so such a call holds money for one search. `web_search = "disabled"` in the same file leaves the search out.',
  tools: {
    read: (path) => call('exec_command', { cmd: `cat ${path}` }),
    load: [{ kind: 'toolSearch', query: 'agents', found: 'by client' }],
    loaded: (calls) => [
      bodyText(calls[1]).includes('"tool_search_output"') ? undefined : 'what was found was not sent back',
    ],
    translated: {
      load: [call('tool_search', { query: 'agents' })],
      loaded: ([first, second]) => [isTold(first, 'tool_search'), isFound(second)],
    },
    seesByItself: true,
  },
  isConversation: ({ tools }) => tools.length > 0,
  retries: true,
  lacks: { 'model list': 'it asks a provider of the configuration for none' },
};

function readEvents(end: ProgramEnd): Outcome {
  const events = jsonLines(end).map(object);
  const done = events.findLast(({ type }) => type === 'turn.completed');
  const usage = object(done?.['usage']);
  const items = events.map(({ item }) => object(item));
  const textsOf = (kind: string) => items.filter(({ type }) => type === kind).map(({ text }) => String(text));
  return {
    succeeded: end.code === 0 && done !== undefined,
    text: textsOf('agent_message').at(-1) ?? '',
    thoughts: textsOf('reasoning').join('\n'),
    usage: { input: Number(usage['input_tokens'] ?? 0), output: Number(usage['output_tokens'] ?? 0) },
  };
}
