/** `tollgate/upstream`: what an adapter for an upstream is written with. */
export { registerAdapter } from '../core/catalog/adapters';
export {
  type AnswerBeginning,
  type BodyEdit,
  type Continuation,
  defineAdapter,
  type EventNote,
  type FrameDecoder,
  type Framing,
  type ModelCall,
  type Protocol,
  type SseEvent,
  type StreamFollower,
  type UnsignedRequest,
  type UpstreamAdapter,
  type UpstreamAdapter1,
  type UpstreamFailure,
  type UpstreamRequest,
  type Verdict,
} from '../core/catalog/upstream';
