/** Why a call was aborted: its client closed the connection. */
export class ClientLeft extends Error {
  override readonly name = 'ClientLeft';
  override readonly message = 'the client closed the connection';
}
