import type { JsonObject } from '../base/json-values';
import type { AnswerError, AnswerReader, AnswerWriter, WrittenCall } from '../catalog/answer';
import type { Conversation, Feature } from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';

/** Translates a protocol of clients: from a client (`readRequest`, `openWriter`, `writeError`), and to an upstream (`writeRequest`, `openReader`). */
export interface ClientDialect {
  /** Converts a request body to a conversation. @throws NotTranslatable for what no other dialect can express */
  readRequest(body: JsonObject): Conversation;
  /** The names of members and parts of this dialect, by the conversation feature that each expresses. */
  readonly names: Readonly<Partial<Record<Feature, string>>>;
  openWriter(call: WrittenCall): AnswerWriter;
  /** Returns an error as the body of an answer, or as the data of the event that ends a stream. */
  writeError(error: AnswerError, status: number, requestId: string): JsonObject;
  /** Writes the body of an upstream request. @throws NotTranslatable that names a `Feature` */
  writeRequest(call: TranslatedCall): JsonObject;
  openReader(adapterSettings?: unknown): AnswerReader;
}
