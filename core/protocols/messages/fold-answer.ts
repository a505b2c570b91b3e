import { asObject, asText, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import { parseForeign } from '../../http/raw-json';

type Block = Record<string, unknown>;

/** Returns the complete message of a stream whose blocks are sequential. `known` replaces members of the stream's first event. */
export function foldAnswer(events: readonly JsonObject[], known: JsonObject): JsonObject {
  let message: JsonObject = {};
  const blocks: Block[] = [];
  const inputs = new Map<Block, string>();
  for (const event of events) {
    if (event['type'] === 'message_start') message = asObject(event['message']) ?? {};
    if (event['type'] === 'content_block_start') blocks.push({ ...asObject(event['content_block']) });
    const block = blocks.at(-1);
    if (event['type'] === 'content_block_delta' && block !== undefined)
      addDelta(block, asObject(event['delta']) ?? {}, inputs);
  }
  const isCut = known['stop_reason'] !== 'tool_use';
  return { ...message, ...known, content: blocks.flatMap((block) => withInput(block, inputs.get(block), isCut)) };
}

function addDelta(block: Block, delta: JsonObject, inputs: Map<Block, string>): void {
  switch (delta['type']) {
    case 'text_delta':
      block['text'] = asText(block['text']) + asText(delta['text']);
      break;
    case 'thinking_delta':
      block['thinking'] = asText(block['thinking']) + asText(delta['thinking']);
      break;
    case 'signature_delta':
      block['signature'] = delta['signature'];
      break;
    case 'citations_delta':
      block['citations'] ??= [];
      (block['citations'] as unknown[]).push(delta['citation']);
      break;
    case 'input_json_delta':
      inputs.set(block, (inputs.get(block) ?? '') + asText(delta['partial_json']));
  }
}

/**
 * Returns a content block with its parsed tool input. Returns nothing for a tool call whose input is incomplete because the answer ended.
 * @throws if the model finished the call with an input that is not valid
 */
function withInput(block: Block, json: string | undefined, isCut: boolean): readonly Block[] {
  if (json === undefined || json.trim() === '') return [block];
  const input = parseForeign(json) ?? asObject(parseJson(json));
  if (input !== undefined) return [{ ...block, input }];
  if (isCut) return [];
  throw new Error('the model called a tool with an input that is not a JSON object');
}
