import { join } from 'node:path';
import { AGENT_PACKAGES, type ProgramEnd } from '../../support/agents';
import { node24 } from '../node';
import { type Client, call, type Point } from './client';

function continueCli(protocol: Client['protocol'], provider: string, model: string): Client {
  return {
    id: `continue-${protocol.toLowerCase()}`,
    title: 'Continue',
    kind: 'agent',
    packages: ['@continuedev/cli'],
    protocol,
    model,
    setup: (point) => ({
      env: {},
      files: { '.continue/config.yaml': configuration(provider, point) },
    }),
    command: ({ prompt }) => ({
      program: node24(),
      args: [
        join(AGENT_PACKAGES, '@continuedev/cli/dist/cn.js'),
        '--print',
        prompt,
        '--auto',
        '--config',
        '../.continue/config.yaml',
      ],
      env: { CONTINUE_TELEMETRY_ENABLED: '0', FORCE_NO_TTY: '1' },
    }),
    read: (end: ProgramEnd) => ({ succeeded: end.code === 0, text: end.output, usage: undefined }),
    tools: { read: (path) => call('Read', { filepath: path }) },
    isConversation: ({ tools }) => tools.length > 0,
    // The provider for Messages treats an error event as the end.
    retries: protocol !== 'Messages',
    lacks: {
      reasoning: 'its command line neither shows any nor sends it back',
      'deferred tools': 'it has none',
      'web search': 'it has none',
      images: 'its command line sends none',
      'model list': 'models stand in its configuration',
      usage: 'its command line tells none',
      ...(protocol === 'Messages' && { 'long session': 'it lets the vendor keep its instructions alone' }),
    },
  };
}

export const continueMessages = continueCli('Messages', 'anthropic', 'claude-sonnet-5-5');
export const continueChat = continueCli('Chat', 'openai', 'glm-5.2');
export const continueResponses = continueCli('Responses', 'openai', 'gpt-5.5');

function configuration(provider: string, { url, model, key }: Point): string {
  return [
    'name: Tollgate',
    'version: 1.0.0',
    'schema: v1',
    'models:',
    `  - name: ${model}`,
    `    provider: ${provider}`,
    `    model: ${model}`,
    `    apiBase: ${url}/v1`,
    `    apiKey: ${key}`,
    '    capabilities: [tool_use, image_input]',
    '',
  ].join('\n');
}
