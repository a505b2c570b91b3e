import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { drive, INSTRUCTIONS, READ_FILE, readFileTool, readImage } from './driver.mjs';

const point = { baseURL: process.env.TOLLGATE_URL, apiKey: process.env.TOLLGATE_API_KEY };
const anthropic = createAnthropic(point);
const openai = createOpenAI(point);
const compatible = createOpenAICompatible({ ...point, name: 'tollgate', includeUsage: true });

const MODELS = { Messages: anthropic, Responses: openai, Chat: compatible };

await drive({
  converse: async ({ feature, prompt, model, protocol }) => {
    const image = feature === 'images' ? [{ type: 'file', mediaType: 'image/png', data: await readImage() }] : [];
    let failure;
    const result = streamText({
      model: MODELS[protocol](model),
      system: INSTRUCTIONS,
      messages: [{ role: 'user', content: [...image, { type: 'text', text: prompt }] }],
      tools: toolsOf(feature, protocol),
      stopWhen: stepCountIs(50),
      onError: ({ error }) => {
        failure = error;
      },
    });
    await result.consumeStream();
    if (failure !== undefined) throw failure;
    const { inputTokens, outputTokens } = await result.totalUsage;
    const thoughts = (await result.steps).map(({ reasoningText = '' }) => reasoningText).join('');
    return { text: await result.text, thoughts, usage: { input: inputTokens, output: outputTokens } };
  },
});

function toolsOf(feature, protocol) {
  if (feature === 'web search') {
    return protocol === 'Messages'
      ? { web_search: anthropic.tools.webSearch_20250305({ maxUses: 1 }) }
      : { web_search: openai.tools.webSearch({}) };
  }
  return {
    [READ_FILE.name]: tool({
      description: READ_FILE.description,
      inputSchema: jsonSchema(READ_FILE.schema),
      execute: readFileTool,
    }),
  };
}
