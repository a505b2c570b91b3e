import { CLAUDE_CODE_QUIET, type ProgramEnd, platformProgram } from '../../support/agents';
import type { FeatureName } from '../features';
import { type Json, object, objectsOf } from '../vendor/json';
import { thoughtsIn } from '../vendor/thoughts';
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
    args: ['--print', prompt, ...formatFor(feature), '--allowedTools', 'Read', 'WebSearch'],
    env: {
      ...CLAUDE_CODE_QUIET,
      ...(feature === 'model list' ? { CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1' } : {}),
    },
    leaves: '.claude/cache/gateway-models.json',
  }),
  read: (end) => ({
    ...readReport(jsonLines(end).map(object).at(-1) ?? {}),
    thoughts: thoughtsShown(end),
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

/** Returns the options that print its reasoning while it works. */
function formatFor(feature: FeatureName): readonly string[] {
  return feature === 'reasoning' ? ['--output-format', 'stream-json', '--verbose'] : ['--output-format', 'json'];
}

function thoughtsShown(end: ProgramEnd): string {
  const messages = jsonLines(end).map((line) => object(object(line)['message']));
  return messages
    .flatMap(thoughtsIn)
    .map(({ text }) => text)
    .join('\n');
}

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
