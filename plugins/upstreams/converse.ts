import { asText } from '../../core/base/json-values';
import { defineAdapter } from '../../core/catalog/upstream';
import { ConverseReader } from '../../core/protocols/converse/answer';
import { writeConverseRequest } from '../../core/protocols/converse/request';
import { authorizeAmazon, REGION, signForAmazon } from './amazon-signature';
import { EventStreamDecoder, type EventStreamMessage, exceptionIn } from './event-stream';
import { judgeFailure } from './judge-failure';

/** The adapter for Amazon Bedrock's Converse, one dialect for the models of all vendors. No client speaks it, so the gateway translates calls. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'bedrock-converse',
  dialect: 'converse',
  schema: { type: 'object', additionalProperties: false, required: ['region'], properties: { region: REGION } },

  request(call) {
    const operation = call.conversation.stream ? 'converse-stream' : 'converse';
    return { path: `/model/${encodeURIComponent(call.model)}/${operation}`, body: writeConverseRequest(call) };
  },

  authorize: authorizeAmazon,
  sign: (request, credential, { region }) => signForAmazon(request, credential, region),

  framing: { mediaType: 'application/vnd.amazon.eventstream', open: () => new EventStreamDecoder(converseEvent) },

  // Status 424 reports a fault of the model's own servers, so another upstream may succeed.
  judge: (failure) => (failure.status === 424 ? 'next' : judgeFailure(failure)),

  answer: () => new ConverseReader(),
});

/** Converts a message to a server-sent event: the message's header has the kind, its body the JSON. */
function converseEvent(streamed: EventStreamMessage): string {
  const exception = exceptionIn(streamed);
  if (exception !== undefined) {
    const error = { type: exception.name, message: exception.message || exception.name };
    return `event: exception\ndata: ${JSON.stringify({ error })}\n\n`;
  }
  const name = asText(streamed.headers[':event-type']?.value);
  const data = Buffer.from(streamed.body).toString('utf8');
  return `event: ${/^\w+$/.test(name) ? name : 'unknown'}\ndata: ${data.replaceAll(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;
}
