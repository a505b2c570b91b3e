import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
  webSearchTool,
} from '@openai/agents';
import OpenAI from 'openai';
import { drive, INSTRUCTIONS, READ_FILE, readFileTool, readImage } from './driver.mjs';

setTracingDisabled(true);

await drive({
  converse: async ({ feature, prompt, model, protocol }) => {
    const Model = protocol === 'Chat' ? OpenAIChatCompletionsModel : OpenAIResponsesModel;
    const read = tool({
      name: READ_FILE.name,
      description: READ_FILE.description,
      parameters: READ_FILE.schema,
      strict: true,
      execute: readFileTool,
    });
    const agent = new Agent({
      name: 'reader',
      instructions: INSTRUCTIONS,
      model: new Model(new OpenAI(), model),
      tools: [feature === 'web search' ? webSearchTool() : read],
    });
    const image =
      feature === 'images' ? [{ type: 'input_image', image: `data:image/png;base64,${await readImage()}` }] : [];
    const content = [...image, { type: 'input_text', text: prompt }];
    const result = await run(agent, [{ role: 'user', content }], { stream: true, maxTurns: 50 });
    await result.completed;
    const { inputTokens, outputTokens } = result.state.usage ?? result.rawResponses.at(-1).usage;
    const items = result.newItems.map(({ rawItem }) => rawItem).filter(({ type }) => type === 'reasoning');
    const thoughts = items.flatMap(({ content }) => content.map(({ text }) => text)).join('');
    return { text: result.finalOutput, thoughts, usage: { input: inputTokens, output: outputTokens } };
  },
});
