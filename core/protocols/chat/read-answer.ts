import { append } from '../../append';
import type { AnswerEvent, AnswerReader } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { UNKNOWN_USAGE } from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { parseJson } from '../../parse-json';
import { ChoiceReader } from './read-choice';

export function openReader(): AnswerReader {
  return new ChatReader();
}

class ChatReader implements AnswerReader {
  readonly #choices = new Map<number, ChoiceReader>();
  #parts = 0;
  #id = '';
  #hasBegun = false;
  #hasEnded = false;

  event({ data }: SseEvent): readonly AnswerEvent[] {
    if (this.#hasEnded || data === undefined || data.trim() === '') return [];
    if (data.trim() === '[DONE]') return this.#end();
    const chunk = asObject(parseJson(data));
    if (chunk === undefined) throw new Error('a chunk of the answer is no JSON object');
    return this.#read(chunk, 'delta');
  }

  body(body: unknown): readonly AnswerEvent[] {
    const answer = asObject(body);
    if (answer === undefined) throw new Error('the answer is no JSON object');
    const said = this.#read(answer, 'message');
    return this.#hasEnded ? said : [...said, ...this.#end()];
  }

  end(): readonly AnswerEvent[] {
    return this.#hasEnded ? [] : this.#closeAll();
  }

  /** Some upstreams have `"error": null` in every chunk. */
  #read(answer: JsonObject, member: 'delta' | 'message'): readonly AnswerEvent[] {
    if (answer['error'] !== undefined && answer['error'] !== null && answer['error'] !== '') {
      this.#hasEnded = true;
      return [...this.#closeAll(), { is: 'error', error: readUsualError(answer) }];
    }
    const choices = asArray(answer['choices']);
    const said = choices.length > 0 || member === 'message' ? this.#begin(answer) : [];
    choices.forEach((given, at) => {
      const choice = asObject(given);
      if (choice !== undefined) append(said, this.#readChoice(choice, asCount(choice['index']) ?? at, member));
    });
    const details = asObject(asObject(answer['usage'])?.['completion_tokens_details']);
    const reasoning = asCount(details?.['reasoning_tokens']);
    if (reasoning !== undefined) said.push({ is: 'usage', usage: UNKNOWN_USAGE, reasoning });
    return said;
  }

  /** Some upstreams send a chunk before the first that has neither choices nor an id. */
  #begin(answer: JsonObject): AnswerEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    this.#id = asText(answer['id']);
    return [{ is: 'begin', id: this.#id || undefined, model: asText(answer['model']) || undefined }];
  }

  #readChoice(choice: JsonObject, index: number, member: 'delta' | 'message'): readonly AnswerEvent[] {
    const reader = this.#choiceOf(index);
    const said: AnswerEvent[] = [...reader.say(asObject(choice[member]) ?? {}, member === 'message')];
    const reason = asText(choice['finish_reason']);
    if (reason !== '' || member === 'message') append(said, reader.finish(reason, asText(choice['stop_reason'])));
    return said;
  }

  #choiceOf(index: number): ChoiceReader {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const reader = new ChoiceReader(index, this.#id, () => this.#parts++);
    this.#choices.set(index, reader);
    return reader;
  }

  #end(): readonly AnswerEvent[] {
    this.#hasEnded = true;
    return [...this.#begin({}), ...this.#closeAll(), { is: 'end' }];
  }

  #closeAll(): readonly AnswerEvent[] {
    return [...this.#choices.values()].flatMap((choice) => choice.close());
  }
}
