/** `tollgate/upstream`: the types and functions for writing an adapter for an upstream. */
export { registerAdapter } from '../core/catalog/adapters';
export type {
  AnswerError,
  AnswerEvent,
  AnswerReader,
  Citation,
  FinishReason,
  OpenPart,
} from '../core/catalog/answer';
export {
  type AudioPart,
  type Conversation,
  type DocumentPart,
  type Feature,
  type ImagePart,
  NotTranslatable,
  type OutputFormat,
  type Part,
  type Reasoning,
  type ReasoningPart,
  type RefusalPart,
  type Signature,
  type Source,
  type TextPart,
  type Tool,
  type ToolCallPart,
  type ToolChoice,
  type ToolResultPart,
  type Turn,
} from '../core/catalog/conversation';
export {
  type BodyEdit,
  defineAdapter,
  type FrameDecoder,
  type Framing,
  type ModelCall,
  type OpenedHost,
  type Protocol,
  type ReasoningSetting,
  type SseEvent,
  type TranslatedCall,
  type TranslatedRequest,
  type TranslatingAdapter,
  type UnsignedRequest,
  type UpstreamAdapter,
  type UpstreamFailure,
  type UpstreamRequest,
  type Verdict,
} from '../core/catalog/upstream';
export { budgetOf, effortOf } from '../core/protocols/effort';
export { unsealFor } from '../core/protocols/seal';
export { jsonInputOf, schemaOf } from '../core/protocols/text-tools';
