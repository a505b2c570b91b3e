import { asText } from '../../core/base/json-values';
import { defineAdapter } from '../../core/catalog/upstream';
import { ConverseReader } from '../../core/protocols/converse/answer';
import { writeConverseRequest } from '../../core/protocols/converse/request';
import { authorizeAmazon, REGION, signForAmazon } from './amazon-signature';
import { EventStreamDecoder, type EventStreamMessage, exceptionIn } from './event-stream';
import { judgeFailure } from './judge-failure';

/** Amazon Bedrock's Converse, one dialect for the models of all vendors. No client uses it, so calls are translated. */
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

  // 424 reports a fault of the model's own servers.
  judge: (failure) => (failure.status === 424 ? 'next' : judgeFailure(failure)),

  answer: () => new ConverseReader(),
});

/** Writes a message as a server-sent event: its header has the kind, its body the JSON. */
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
