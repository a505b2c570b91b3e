import type { JsonObject } from '../base/json-values';
import type { AnswerError, AnswerReader, AnswerWriter, WrittenCall } from '../catalog/answer';
import type { Conversation, Feature } from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';

/**
 * The translation between a client protocol and the gateway's own form. `readRequest`, `openWriter` and `writeError` serve clients;
 * `writeRequest` and `openReader` serve upstreams.
 */
export interface ClientDialect {
  /** Converts a request body to a conversation. @throws NotTranslatable for content that no other dialect can express */
  readRequest(body: JsonObject): Conversation;
  /** The dialect's name (a member or a content part) for each conversation feature that it can express. */
  readonly names: Readonly<Partial<Record<Feature, string>>>;
  openWriter(call: WrittenCall): AnswerWriter;
  /** Returns an error as the body of an answer, or as the data of the event that ends a stream. */
  writeError(error: AnswerError, status: number, requestId: string): JsonObject;
  /** Writes the body of an upstream request. @throws NotTranslatable that names a `Feature` */
  writeRequest(call: TranslatedCall): JsonObject;
  openReader(adapterSettings?: unknown): AnswerReader;
}
