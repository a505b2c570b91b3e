/** The status in the usage record of a call whose client disconnected before the answer. */
export const CLIENT_LEFT_STATUS = 499;

/** The reason of an abort because the client has closed its connection. */
export class ClientLeft extends Error {
  override readonly name = 'ClientLeft';
  override readonly message = 'the client closed the connection';
}
