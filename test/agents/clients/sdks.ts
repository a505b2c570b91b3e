import { join, resolve } from 'node:path';
import { CLAUDE_CODE_QUIET } from '../../support/agents';
import { node24 } from '../node';
import { object } from '../vendor/json';
import type { VendorCall } from '../vendor/vendor';
import { claudeCode } from './claude-code';
import { bodyText, type Client, call, jsonLines, type Point } from './client';

const DRIVERS = resolve(__dirname, '../drivers');
const MODELS = { Messages: 'claude-sonnet-5-5', Chat: 'gpt-5.5', Responses: 'gpt-5.5' } as const;

interface Sdk {
  readonly id: string;
  readonly title: string;
  readonly packages: readonly [string, ...string[]];
  /** The name of the file in drivers/. */
  readonly driver: string;
  readonly protocol: Client['protocol'];
  readonly env: (point: Point) => Readonly<Record<string, string>>;
  /** The source lines of a program, if environment variables are not sufficient. */
  readonly code?: string;
  /** The agent that the SDK runs and whose tools it has. */
  readonly sameAs?: Client;
  readonly lacks?: Client['lacks'];
}

const NO_LIST: Client['lacks'] = { 'model list': 'it has no call for it' };
const NO_DEFERRED: Client['lacks'] = { 'deferred tools': 'the protocol has none' };
const NO_REASONING: Client['lacks'] = { reasoning: 'it sends none back' };
const NOT_TRIED: Client['lacks'] = { 'deferred tools': 'not tried' };

const anthropicEnv = ({ url, key }: Point) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key });
const openaiEnv = ({ url, key }: Point) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key });
const ownEnv = ({ url, key }: Point) => ({ TOLLGATE_URL: `${url}/v1`, TOLLGATE_API_KEY: key });

function sdk({ driver, env, code, sameAs, lacks = {}, ...named }: Sdk): Client {
  return {
    ...named,
    kind: 'SDK',
    model: MODELS[named.protocol],
    setup: (point) => ({ env: env(point), files: {}, ...(code === undefined ? {} : { code }) }),
    command: ({ feature, prompt, point: { model } }) => ({
      program: node24(),
      args: [join(DRIVERS, driver), JSON.stringify({ feature, prompt, model, protocol: named.protocol })],
      env: sameAs === undefined ? {} : CLAUDE_CODE_QUIET,
    }),
    read: (end) => {
      const { succeeded, text, thoughts, usage, models } = object(jsonLines(end).at(-1));
      const { input, output } = object(usage);
      return {
        succeeded: succeeded === true,
        text: String(text ?? ''),
        thoughts: String(thoughts ?? ''),
        usage: usage === undefined ? undefined : { input: Number(input), output: Number(output) },
        models: Array.isArray(models) ? models.map(String) : [],
      };
    },
    tools: sameAs?.tools ?? TOOLS,
    isConversation: sameAs?.isConversation ?? (() => true),
    retries: sameAs?.retries ?? false,
    lacks,
  };
}

const TOOLS: Client['tools'] = {
  read: (path) => call('read_file', { path }),
  load: [{ kind: 'toolSearch', query: 'files', found: ['read_file'] }, call('read_file', { path: 'note.txt' })],
  loaded: wasDeferred,
  seesByItself: true,
};

function wasDeferred(calls: readonly VendorCall[]): readonly (string | undefined)[] {
  const [first = '', second = ''] = calls.map(bodyText);
  return [
    first.includes('"defer_loading":true') ? undefined : 'no tool was deferred',
    /"type":"tool_search_(tool_result|output)"/.test(second) ? undefined : 'what was found was not sent back',
  ];
}

/** Returns the source lines of a program that calls the gateway through the AI SDK. */
function aiSdkCode(factory: string, npm: string, more: readonly string[] = []): string {
  return [
    `import { ${factory} } from '${npm}';`,
    `const tollgate = ${factory}({`,
    ...more.map((line) => `  ${line},`),
    '  baseURL: process.env.TOLLGATE_URL,',
    '  apiKey: process.env.TOLLGATE_API_KEY,',
    '});',
  ].join('\n');
}

export const SDKS: readonly Client[] = [
  sdk({
    id: 'claude-agent-sdk',
    title: 'Claude Agent SDK',
    packages: ['@anthropic-ai/claude-agent-sdk'],
    driver: 'claude-agent-sdk.mjs',
    protocol: 'Messages',
    env: ({ url, key, model }) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: model }),
    sameAs: claudeCode,
    lacks: NO_LIST,
  }),
  sdk({
    id: 'anthropic-sdk',
    title: 'Anthropic SDK',
    packages: ['@anthropic-ai/sdk'],
    driver: 'anthropic.mjs',
    protocol: 'Messages',
    env: anthropicEnv,
  }),
  sdk({
    id: 'openai-sdk-chat',
    title: 'OpenAI SDK',
    packages: ['openai'],
    driver: 'openai.mjs',
    protocol: 'Chat',
    env: openaiEnv,
    lacks: { ...NO_DEFERRED, reasoning: 'its helper keeps the last piece of a member that it does not know' },
  }),
  sdk({
    id: 'openai-sdk-responses',
    title: 'OpenAI SDK',
    packages: ['openai'],
    driver: 'openai.mjs',
    protocol: 'Responses',
    env: openaiEnv,
  }),
  sdk({
    id: 'ai-sdk-messages',
    title: 'AI SDK',
    packages: ['ai', '@ai-sdk/anthropic'],
    driver: 'ai-sdk.mjs',
    protocol: 'Messages',
    env: ownEnv,
    code: aiSdkCode('createAnthropic', '@ai-sdk/anthropic'),
    lacks: { ...NO_LIST, ...NOT_TRIED },
  }),
  sdk({
    id: 'ai-sdk-chat',
    title: 'AI SDK',
    packages: ['ai', '@ai-sdk/openai-compatible'],
    driver: 'ai-sdk.mjs',
    protocol: 'Chat',
    env: ownEnv,
    code: aiSdkCode('createOpenAICompatible', '@ai-sdk/openai-compatible', ["name: 'tollgate'", 'includeUsage: true']),
    lacks: { ...NO_LIST, ...NO_DEFERRED, 'web search': 'this provider has no tools of vendors' },
  }),
  sdk({
    id: 'ai-sdk-responses',
    title: 'AI SDK',
    packages: ['ai', '@ai-sdk/openai'],
    driver: 'ai-sdk.mjs',
    protocol: 'Responses',
    env: ownEnv,
    code: aiSdkCode('createOpenAI', '@ai-sdk/openai'),
    lacks: { ...NO_LIST, ...NOT_TRIED, reasoning: 'it names what the vendor has kept' },
  }),
  sdk({
    id: 'openai-agents-chat',
    title: 'OpenAI Agents SDK',
    packages: ['@openai/agents'],
    driver: 'openai-agents.mjs',
    protocol: 'Chat',
    env: openaiEnv,
    lacks: {
      ...NO_LIST,
      ...NO_DEFERRED,
      ...NO_REASONING,
      'web search': 'it has tools of vendors for Responses only',
    },
  }),
  sdk({
    id: 'openai-agents-responses',
    title: 'OpenAI Agents SDK',
    packages: ['@openai/agents'],
    driver: 'openai-agents.mjs',
    protocol: 'Responses',
    env: openaiEnv,
    lacks: { ...NO_LIST, ...NOT_TRIED },
  }),
  sdk({
    id: 'langchain-messages',
    title: 'LangChain',
    packages: ['@langchain/anthropic'],
    driver: 'langchain.mjs',
    protocol: 'Messages',
    env: anthropicEnv,
    lacks: { ...NO_LIST, ...NOT_TRIED, usage: 'it counts the first token of a stream twice' },
  }),
  sdk({
    id: 'langchain-chat',
    title: 'LangChain',
    packages: ['@langchain/openai'],
    driver: 'langchain.mjs',
    protocol: 'Chat',
    env: openaiEnv,
    lacks: {
      ...NO_LIST,
      ...NO_DEFERRED,
      ...NO_REASONING,
      'web search': 'it has tools of vendors for Responses only',
    },
  }),
  sdk({
    id: 'langchain-responses',
    title: 'LangChain',
    packages: ['@langchain/openai'],
    driver: 'langchain.mjs',
    protocol: 'Responses',
    env: openaiEnv,
    lacks: { ...NO_LIST, ...NOT_TRIED },
  }),
];
