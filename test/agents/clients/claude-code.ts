import { CLAUDE_CODE_QUIET, platformProgram } from '../../support/agents';
import { type Json, object, objectsOf } from '../vendor/json';
import { bodyText, type Client, call, isFound, isTold, jsonLines, type Outcome } from './client';

export const claudeCode: Client = {
  id: 'claude-code',
  title: 'Claude Code',
  kind: 'agent',
  packages: ['@anthropic-ai/claude-code'],
  protocol: 'Messages',
  model: 'claude-sonnet-5-5',
  setup: ({ url, key, model }) => ({
    env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: model },
    files: {},
  }),
  command: ({ feature, prompt }) => ({
    program: platformProgram('@anthropic-ai/claude-code', 'claude'),
    args: ['--print', prompt, '--output-format', 'json', '--allowedTools', 'Read', 'WebSearch'],
    env: {
      ...CLAUDE_CODE_QUIET,
      ...(feature === 'model list' ? { CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1' } : {}),
    },
    leaves: '.claude/cache/gateway-models.json',
  }),
  read: (end) => ({
    ...readReport(jsonLines(end).map(object).at(-1) ?? {}),
    models: objectsOf(object(JSON.parse(end.left ?? '{}'))['models']).map(({ id }) => String(id)),
  }),
  tools: {
    read: (path) => call('Read', { file_path: path }),
    load: [call('ToolSearch', { query: 'select:WebSearch', max_results: 1 })],
    loaded: (calls) => [
      bodyText(calls[0]).includes('"defer_loading":true') ? undefined : 'no tool was deferred',
      bodyText(calls[1]).includes('"tool_reference"') ? undefined : 'no tool was loaded',
    ],
    translated: { loaded: ([, second]) => [isTold(second, 'WebSearch'), isFound(second)] },
    search: call('WebSearch', { query: 'when are tolls due' }),
  },
  isConversation: ({ tools }) => tools.length > 0,
  retries: true,
  lacks: {},
};

export function readReport(report: Json): Outcome {
  const usage = object(report['usage']);
  const count = (name: string) => Number(usage[name] ?? 0);
  return {
    succeeded: report['subtype'] === 'success' && report['is_error'] === false,
    text: String(report['result'] ?? ''),
    usage: {
      input: count('input_tokens') + count('cache_read_input_tokens') + count('cache_creation_input_tokens'),
      output: count('output_tokens'),
    },
  };
}
