/** The status in the usage record of a call whose client disconnected before it was answered. */
export const CLIENT_LEFT_STATUS = 499;

/** Why a call was aborted: its client closed the connection. */
export class ClientLeft extends Error {
  override readonly name = 'ClientLeft';
  override readonly message = 'the client closed the connection';
}
