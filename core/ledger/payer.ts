/** Whose money an operation moves. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string;
}

export type AccountStatus = 'active' | 'frozen';

export interface AccountState {
  readonly status: AccountStatus;
  readonly availableE8: bigint;
  readonly heldE8: bigint;
  /** available + held, always. */
  readonly postedE8: bigint;
  /** Number of the account's last entry. */
  readonly seq: number;
}
