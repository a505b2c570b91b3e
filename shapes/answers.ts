/** What the admin API and the interfaces of the pages answer. Made of the routes' own schemas: change these, then `npm run shapes`. */

export interface Answers {
  "DELETE /admin/v1/budgets/{budgetId}": {
    id: string;
    accountId: string;
    scope: "account" | "team" | "member" | "key" | "tag";
    scopeId: string | null;
    name: string;
    tag: string | null;
    value: string | null;
    window: "total" | "day" | "week" | "month";
    limitUsd: string;
    spentUsd: string | null;
    heldUsd: string | null;
    resetsAt: string | null;
    thresholds: number[];
  };
  "DELETE /admin/v1/invitations/{invitationId}": {
    id: string;
    email: string;
    role: "owner" | "admin" | "member" | "viewer";
    teamIds: string[];
    expiresAt: string;
  };
  "DELETE /admin/v1/keys/{keyId}": {
    id: string;
    accountId: string;
    name: string;
    prefix: string;
    suffix: string;
    status: "active" | "revoked";
    balanceLimit: string | null;
    dailyLimit: string | null;
    monthlyLimit: string | null;
    callsPerMinute: number | null;
    tokensPerMinute: number | null;
    spentUsd: string | null;
    heldUsd: string | null;
    allowedModels: string[] | null;
    debug: boolean;
    teamId: string | null;
    memberId: string | null;
    requiredTags: string[] | null;
    require: string | null;
    createdAt: string;
    expiresAt: string | null;
    allowedAddresses: string[] | null;
    previousSecretUntil: string | null;
    revokedAt: string | null;
    markup: string | null;
  };
  "DELETE /admin/v1/teams/{teamId}": {
    id: string;
    accountId: string;
    name: string;
    members: string[];
    requiredTags: string[] | null;
    require: string | null;
    createdAt: string;
  };
  /** @format DELETE /admin/v1/teams/{teamId} */
  "DELETE /admin/v1/teams/{teamId}/members/{userId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  "DELETE /admin/v1/tokens/{tokenId}": {
    id: string;
    name: string;
    role: "metrics" | "read" | "write" | "owner";
    suffix: string;
    createdAt: string;
    expiresAt: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
  };
  "DELETE /admin/v1/users/{userId}": {
    id: string;
    accountId: string;
    email: string;
    role: "owner" | "admin" | "member" | "viewer";
    status: "active" | "disabled" | "removed";
    createdAt: string;
    passwordChangedAt: string;
    identity: {
      issuer: string;
      subject: string;
      boundAt: string;
    } | null;
  };
  /** @format DELETE /admin/v1/users/{userId} */
  "DELETE /admin/v1/users/{userId}/identity": Answers["DELETE /admin/v1/users/{userId}"];
  "DELETE /admin/v1/webhooks/{webhookId}": {
    id: string;
    accountId: string;
    url: string;
    types:
      | (
          | "balance.low"
          | "budget.reached"
          | "account.frozen"
          | "key.expires_soon"
          | "sandbox.state"
          | "webhook.disabled"
        )[]
      | null;
    status: "active" | "disabled";
    createdAt: string;
  };
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "DELETE /console/api/budgets/{budgetId}": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  /** @format DELETE /admin/v1/invitations/{invitationId} */
  "DELETE /console/api/invitations/{invitationId}": Answers["DELETE /admin/v1/invitations/{invitationId}"];
  "DELETE /console/api/keys/{keyId}": {
    id: string;
    name: string;
    prefix: string;
    suffix: string;
    status: "active" | "revoked";
    balanceLimit: string | null;
    dailyLimit: string | null;
    monthlyLimit: string | null;
    callsPerMinute: number | null;
    tokensPerMinute: number | null;
    spentUsd: string | null;
    heldUsd: string | null;
    allowedModels: string[] | null;
    teamId: string | null;
    memberId: string | null;
    requiredTags: string[] | null;
    require: string | null;
    createdAt: string;
    expiresAt: string | null;
    allowedAddresses: string[] | null;
    previousSecretUntil: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
  };
  /** @format DELETE /admin/v1/users/{userId} */
  "DELETE /console/api/members/{userId}": Answers["DELETE /admin/v1/users/{userId}"];
  "DELETE /console/api/sandboxes/{id}": {
    id: string;
    type:
      | "CREATE"
      | "SUSPEND"
      | "RESUME"
      | "TERMINATE"
      | "EXEC"
      | "SIGNAL"
      | "FILE_READ"
      | "FILE_WRITE"
      | "FILE_LIST"
      | "FILE_DELETE"
      | "PORT_EXPOSE"
      | "PORT_REVOKE";
    status: "PENDING" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED";
    cause: string;
    idempotencyKey: string | null;
    requestedAt: string;
    startedAt: string | null;
    endedAt: string | null;
    error: {
      code: string;
      message: string;
    } | null;
    result: Record<string, unknown> | null;
    noop: boolean;
  };
  /** @format DELETE /admin/v1/teams/{teamId} */
  "DELETE /console/api/teams/{teamId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "DELETE /console/api/teams/{teamId}/members/{userId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format DELETE /admin/v1/webhooks/{webhookId} */
  "DELETE /console/api/webhooks/{webhookId}": Answers["DELETE /admin/v1/webhooks/{webhookId}"];
  "GET /admin/v1/accounts": {
    items: Answers["GET /admin/v1/accounts/{accountId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}": {
    id: string;
    name: string;
    status: "active" | "frozen";
    createdAt: string;
    balanceUsd: string | null;
    heldUsd: string | null;
    availableUsd: string | null;
    excessUsd: string;
    markup: string | null;
    balanceLowUsd: string | null;
    require: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/budgets": {
    items: Answers["DELETE /admin/v1/budgets/{budgetId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/invitations": {
    items: Answers["DELETE /admin/v1/invitations/{invitationId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/keys": {
    items: Answers["DELETE /admin/v1/keys/{keyId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/teams": {
    items: Answers["DELETE /admin/v1/teams/{teamId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/users": {
    items: Answers["DELETE /admin/v1/users/{userId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/accounts/{accountId}/webhooks": {
    items: Answers["DELETE /admin/v1/webhooks/{webhookId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/audit": {
    items: {
      id: string;
      createdAt: string;
      actor: string;
      action: string;
      subject: string;
      before: Record<string, unknown> | null;
      after: Record<string, unknown> | null;
    }[];
    nextCursor: string | null;
  };
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "GET /admin/v1/budgets/{budgetId}": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  "GET /admin/v1/catalogue/proposals": {
    items: Answers["GET /admin/v1/catalogue/proposals/{proposalId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/catalogue/proposals/{proposalId}": {
    id: string;
    source: "models.dev" | "litellm" | "file";
    format: "models.dev" | "litellm";
    url: string | null;
    status: "open" | "applied";
    createdAt: string;
    holdsFrom: string | null;
    number: number | null;
    rows: {
      id: string;
      upstream: string;
      model: string;
      meter:
        | "input"
        | "audioInput"
        | "imageInput"
        | "cacheRead"
        | "audioCacheRead"
        | "cacheWrite"
        | "cacheWrite1h"
        | "output"
        | "audioOutput"
        | "imageOutput";
      old: string;
      new: string | null;
      source: string;
      date: string;
      state: "proposed" | "stopped" | "accepted" | "refused";
      guard:
        | "vendor"
        | "hand"
        | "number"
        | "unpriced"
        | "vanished"
        | "zero"
        | "factor"
        | "changed"
        | null;
    }[];
    gone: {
      upstream: string;
      model: string;
    }[];
  };
  "GET /admin/v1/config/revision": {
    source: "file" | "database";
    number: number | null;
    revision: string;
    since: string;
    restartNeeded: string[];
    lastFailure: {
      at: string;
      actor: string;
      number: number | null;
      problems: {
        file: string;
        line?: number;
        column?: number;
        message: string;
      }[];
    } | null;
  };
  "GET /admin/v1/config/revisions": {
    items: {
      number: number;
      revision: string;
      createdAt: string;
      actor: string;
      note: string | null;
      restores: number | null;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/config/revisions/{revision}": {
    number: number;
    revision: string;
    createdAt: string;
    actor: string;
    note: string | null;
    restores: number | null;
    text: string;
  };
  "GET /admin/v1/config/status": {
    source: "file" | "database";
    newest: {
      number: number;
      revision: string;
    } | null;
    nodes: {
      node: string;
      name: string;
      startedAt: string;
      seenAt: string;
      source: "file" | "database";
      number: number | null;
      revision: string;
      since: string;
      restartNeeded: string[];
      failure: {
        at: string;
        number: number | null;
        problems: {
          file: string;
          line?: number;
          column?: number;
          message: string;
        }[];
      } | null;
    }[];
  };
  "GET /admin/v1/events": {
    items: {
      id: string;
      sequence: number;
      type: string;
      timestamp: string;
      accountId: string | null;
      data: Record<string, unknown>;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/invoices/{name}": {
    upstream: string;
    from: string;
    to: string;
    usage: {
      day: string;
      apiKeyId: string | null;
      workspaceId: string | null;
      model: string;
      tier: string | null;
      counts: Record<string, number>;
    }[];
    costs: {
      day: string;
      workspaceId: string | null;
      item: string | null;
      reportedUsd: string;
    }[];
  };
  "GET /admin/v1/invoices/{name}/comparison": {
    upstream: string;
    from: string;
    to: string;
    isAlarm: boolean;
    counts: {
      day: string;
      model: string;
      meter: string;
      reported: number;
      recorded: number;
      difference: number;
      differenceUsd: string | null;
      causes: {
        cause:
          | "answered"
          | "unknown"
          | "estimated"
          | "left"
          | "failed"
          | "mirror"
          | "test"
          | "expired"
          | "unexplained";
        attempts: number;
      }[];
    }[];
    costs: {
      day: string;
      reportedUsd: string;
      recordedUsd: string;
      differenceUsd: string;
      ofCountsUsd: string | null;
      ofPricesUsd: string | null;
      chargedUsd: string;
      workspaces: {
        workspaceId: string | null;
        reportedUsd: string;
      }[];
      isAlarm: boolean;
    }[];
    causes: {
      day: string;
      cause:
        | "answered"
        | "unknown"
        | "estimated"
        | "left"
        | "failed"
        | "mirror"
        | "test";
      attempts: number;
      uncertain: number;
      recordedUsd: string;
    }[];
  };
  "GET /admin/v1/ledger/shortfalls": {
    items: {
      accountId: string;
      keyId: string | null;
      rid: string;
      createdAt: string;
      dueUsd: string;
      chargedUsd: string;
      shortfallUsd: string;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/ledger/verify": {
    items: {
      invariant:
        | "account_missing"
        | "key_missing"
        | "available_negative"
        | "held_negative"
        | "balance_differs"
        | "holds_differ"
        | "scope_holds_differ"
        | "hold_without_deadline"
        | "hold_overdue"
        | "limit_exceeded"
        | "spent_differs"
        | "chain_gap"
        | "chain_broken"
        | "chain_end_differs"
        | "scope_sum_differs"
        | "posted_differs"
        | "entry_lost"
        | "ledger_behind"
        | "closed_twice"
        | "record_missing"
        | "record_twice"
        | "record_without_entry"
        | "record_differs"
        | "credit_missing"
        | "outbox_old";
      holds: string;
      accountId: string | null;
      seq: number | null;
      keyId: string | null;
      scope: string | null;
      rid: string | null;
      expected: string;
      found: string;
      repair: "expired" | "credit_sent" | "charge_credited" | null;
    }[];
    nextCursor: string | null;
    accounts: number;
    entries: number;
  };
  "GET /admin/v1/now": {
    at: string;
    lately: {
      start: string;
      calls: number;
      failed: number;
      costUsd: string;
      p99Ms: number | null;
    };
    minutes: {
      start: string;
      calls: number;
      failed: number;
      costUsd: string;
      p99Ms: number | null;
    }[];
    heldUsd: string | null;
    outbox: {
      oldestSeconds: number;
      memoryShare: number;
    };
  };
  "GET /admin/v1/openapi.json": Record<string, unknown>;
  "GET /admin/v1/rollouts": {
    items: Answers["GET /admin/v1/rollouts/{name}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/rollouts/{name}": {
    name: string;
    change: string;
    stickyBy: "account" | "key" | "request";
    status:
      | "not begun"
      | "running"
      | "paused"
      | "held"
      | "rolled-back"
      | "completed";
    stage: number;
    share: number;
    stageSince: string | null;
    stageEndsAt: string | null;
    waitsFor: string | null;
    reason: string | null;
    changedAt: string | null;
    stages: {
      share: number;
      holdSeconds: number;
    }[];
    guards: {
      name: string;
      above: number;
      times: number | null;
      minCalls: number;
    }[];
    shadow: number;
    onAbort: "rollback" | "hold";
    inStage: {
      control: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
      treatment: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
      shadow: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
    };
    inAll: {
      control: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
      treatment: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
      shadow: {
        calls: number;
        errors: number;
        errorRate: number | null;
        callersHurt: number;
        streams: number;
        p95FirstTokenMs: number | null;
        wholeAnswers: number;
        p95WholeMs: number | null;
        costUsd: string;
        meanCostUsd: string | null;
      };
    };
  };
  "GET /admin/v1/sandboxes": {
    items: {
      id: string;
      offeringId: string;
      offeringName: string;
      observedState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | "UNKNOWN";
      desiredState: "RUNNING" | "SUSPENDED" | "TERMINATED" | null;
      lifecyclePhase:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDING"
        | "SUSPENDED"
        | "RESUMING"
        | "TERMINATING"
        | "RECONCILING"
        | "TERMINATED"
        | "FAILED";
      lastConfirmedState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | null;
      stateVersion: number;
      totalCost: string;
      resources: {
        cpu: number;
        memoryGiB: number;
        volumeGiB: number;
        gpu: {
          model: string;
          count: number;
        }[];
      };
      reservedUntil: string | null;
      createdAt: string;
      terminatedAt: string | null;
      policy: {
        resumeOnAccess: boolean;
        idleTimeoutSeconds: number | null;
        maxLifetimeSeconds: number | null;
        maxTotalCostUsd: string | null;
        onFundsExhausted: "suspend" | "terminate";
      };
      /** @deprecated */
      autoResume: boolean;
      failure: {
        code: string;
        message: string;
      } | null;
      accountId: string;
      keyId: string;
      supplier: string;
      place: string | null;
      supplierRef: Record<string, unknown> | null;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/sandboxes/orphans": {
    items: {
      id: string;
      supplier: string;
      place: string | null;
      supplierRef: Record<string, unknown>;
      name: string;
      sandboxId: string | null;
      reason: string;
      attempts: number;
      foundAt: string;
      removedAt: string | null;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/sandboxes/places": {
    items: Answers["POST /admin/v1/sandboxes/places/{id}/lose"][];
  };
  "GET /admin/v1/tokens": {
    items: Answers["DELETE /admin/v1/tokens/{tokenId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/tokens/own": {
    name: string;
    role: "metrics" | "read" | "write" | "owner";
    expiresAt: string | null;
  };
  "GET /admin/v1/upstreams": {
    items: Answers["GET /admin/v1/upstreams/{name}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/upstreams/{name}": {
    name: string;
    url: string;
    adapters: string[];
    tier: "official" | "high-sla" | "standard";
    weight: number;
    state:
      | "disabled"
      | "taken-out"
      | "ejected"
      | "probing"
      | "resting"
      | "available";
    disabledReason: string | null;
    takenOut: {
      since: string;
      by: string;
      reason: string | null;
    } | null;
    ejectedUntil: string | null;
    restsUntil: string | null;
    credentials: {
      name: string;
      weight: number;
      state: "missing" | "refused" | "rate-limited" | "available";
      refusedWith: number | null;
      restsUntil: string | null;
      missing: string | null;
    }[];
    successRate: number | null;
    consecutiveFailures: number;
    lastFailureAt: string | null;
    attempts: {
      answered: number;
      failed: number;
    };
    firstTokenMs: number | null;
    wholeAnswerMs: number | null;
    models: {
      name: string;
      aliases: string[];
      protocols: ("messages" | "chat" | "responses" | "embeddings")[];
      translated: ("responses" | "messages" | "chat")[];
      reasoning: "effort" | "budget" | null;
      context: number;
      maxOutput: number;
      firstTokenMs: number | null;
      wholeAnswerMs: number | null;
      facts: {
        upstream: string;
        region: string[] | "unknown";
        retention: number | "none" | "unknown";
        trains: "no" | "yes" | "unknown";
        inputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        outputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        tools: boolean | "unknown";
        structuredOutputs: boolean | "unknown";
        reasoning: boolean | "unknown";
        context: number;
        maxOutput: number;
        released: string;
        retires: string;
      };
      pricePerMillion: {
        input: string;
        output: string;
        cacheWrite: string;
        cacheWrite1h: string;
        cacheRead: string;
        above: {
          tokens: number;
          input: string;
          output: string;
          cacheWrite: string;
          cacheWrite1h: string;
          cacheRead: string;
          audioInput?: string;
          audioCacheRead?: string;
          audioOutput?: string;
          imageInput?: string;
          imageOutput?: string;
        } | null;
        pieces: Record<string, string>;
        variants: Record<
          string,
          {
            input: string;
            output: string;
            cacheWrite: string;
            cacheWrite1h: string;
            cacheRead: string;
            above: {
              tokens: number;
              input: string;
              output: string;
              cacheWrite: string;
              cacheWrite1h: string;
              cacheRead: string;
              audioInput?: string;
              audioCacheRead?: string;
              audioOutput?: string;
              imageInput?: string;
              imageOutput?: string;
            } | null;
            audioInput?: string;
            audioCacheRead?: string;
            audioOutput?: string;
            imageInput?: string;
            imageOutput?: string;
          }
        >;
        audioInput?: string;
        audioCacheRead?: string;
        audioOutput?: string;
        imageInput?: string;
        imageOutput?: string;
      };
    }[];
  };
  "GET /admin/v1/usage": {
    items: Answers["GET /admin/v1/usage/{requestId}"][];
    nextCursor: string | null;
  };
  "GET /admin/v1/usage/replay": {
    calls: number;
    costUsd: string;
    replayedUsd: string;
    items: {
      accountId: string;
      model: string;
      calls: number;
      costUsd: string;
      replayedUsd: string;
    }[];
  };
  "GET /admin/v1/usage/report": {
    holds: boolean;
    calls: number;
    attempts: number;
    unrecorded: number;
    outside: {
      requestId: string;
      upstream: string;
      fact:
        | "region"
        | "retention"
        | "trains"
        | "max-input-price"
        | "max-output-price"
        | "context";
      has: string;
    }[];
    unrecordedCalls?: string[];
  };
  "GET /admin/v1/usage/totals": {
    calls: number;
    failed: number;
    costUsd: string;
    inputTokens: number;
    outputTokens: number;
    cacheCreationTokens: number;
    cacheReadTokens: number;
    totalTokens: number;
    firstTokenMs: {
      p50: number | null;
      p90: number | null;
      p99: number | null;
    };
    groups?: {
      id: string | null;
      name: string;
      calls: number;
      costUsd: string;
    }[];
  };
  "GET /admin/v1/usage/{requestId}": {
    requestId: string;
    createdAt: string;
    keyId: string;
    keyName: string | null;
    protocol: "messages" | "chat" | "responses" | "embeddings";
    path: string;
    strategy: string | null;
    modelRequested: string | null;
    model: string | null;
    upstream: string | null;
    attempts: number;
    fallback: boolean;
    stream: boolean;
    status: number;
    source: "provider" | "platform";
    errorCode: string | null;
    inputTokens: number | null;
    outputTokens: number | null;
    totalTokens: number | null;
    cacheCreationTokens: number | null;
    cacheReadTokens: number | null;
    cost: string;
    billing: "actual" | "estimated" | "released" | "partial" | "expired";
    responseTimeMs: number;
    firstTokenMs: number | null;
    configRevision: string;
    calls: number;
    passes: Record<string, number | string>[] | null;
    flags:
      | (
          | "unknown"
          | "unpriced"
          | "suspect"
          | "translated"
          | "weakened"
          | "region"
        )[]
      | null;
    sessionId: string | null;
    agentId: string | null;
    endUserId: string | null;
    teamId: string | null;
    memberId: string | null;
    tags: Record<string, string> | null;
    region: string | null;
    demands: string | null;
    accountId: string;
    rollout: string | null;
    rolloutStage: number | null;
    rolloutGroup: "control" | "treatment" | null;
    excess: string | null;
    upstreamCost: string | null;
    routing: {
      of: number;
      candidates: {
        upstream: string;
        score: number;
      }[];
      attempts: {
        upstream: string;
        outcome: string;
        ms: number;
        status?: number | null;
        why?: string | null;
      }[];
      clientRetry?: number;
      intent?: Record<string, unknown>;
      excluded?: {
        upstream: string;
        fact: string;
        demanded: string;
        has: string;
      }[];
    } | null;
  };
  "GET /admin/v1/usage/{requestId}/attempts": {
    items: {
      number: number;
      createdAt: string;
      upstream: string;
      credential: string;
      model: string;
      cause:
        | "answered"
        | "unknown"
        | "estimated"
        | "left"
        | "failed"
        | "mirror"
        | "test";
      outcome: string;
      status: number | null;
      ms: number;
      upstreamRequestId: string | null;
      region: string | null;
      declared: Record<string, unknown> | null;
      passes: Record<string, number | string>[] | null;
      isReported: boolean;
      upstreamCost: string;
    }[];
    nextCursor: string | null;
  };
  "GET /admin/v1/webhooks/{webhookId}/deliveries": {
    items: Answers["POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"][];
    nextCursor: string | null;
  };
  "GET /console/api/account": {
    id: string;
    name: string;
    balanceLowUsd: string | null;
  };
  /** @format GET /admin/v1/accounts/{accountId}/budgets */
  "GET /console/api/budgets": Answers["GET /admin/v1/accounts/{accountId}/budgets"];
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "GET /console/api/budgets/{budgetId}": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  "GET /console/api/catalog": {
    publicUrl: string;
    strategies: string[];
    models: {
      name: string;
      aliases: string[];
      protocols: ("messages" | "chat" | "responses" | "embeddings")[];
      context: number;
      maxOutput: number;
      upstreams: string[];
      facts: {
        upstream: string;
        region: string[] | "unknown";
        retention: number | "none" | "unknown";
        trains: "no" | "yes" | "unknown";
        inputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        outputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        tools: boolean | "unknown";
        structuredOutputs: boolean | "unknown";
        reasoning: boolean | "unknown";
        context: number;
        maxOutput: number;
        released: string;
        retires: string;
      }[];
      pricePerMillion: {
        input: string;
        output: string;
        cacheWrite: string;
        cacheWrite1h: string;
        cacheRead: string;
        audioInput?: string;
        audioCacheRead?: string;
        audioOutput?: string;
        imageInput?: string;
        imageOutput?: string;
      };
    }[];
    upstreams: {
      name: string;
      tier: "official" | "high-sla" | "standard";
      state:
        | "disabled"
        | "taken-out"
        | "ejected"
        | "probing"
        | "resting"
        | "available";
      successRate: number | null;
      firstTokenMs: number | null;
      models: string[];
    }[];
  };
  /** @format GET /admin/v1/events */
  "GET /console/api/events": Answers["GET /admin/v1/events"];
  /** @format GET /admin/v1/accounts/{accountId}/invitations */
  "GET /console/api/invitations": Answers["GET /admin/v1/accounts/{accountId}/invitations"];
  "GET /console/api/keys": {
    items: Answers["DELETE /console/api/keys/{keyId}"][];
    nextCursor: string | null;
  };
  /** @format DELETE /console/api/keys/{keyId} */
  "GET /console/api/keys/{keyId}": Answers["DELETE /console/api/keys/{keyId}"];
  /** @format GET /admin/v1/accounts/{accountId}/users */
  "GET /console/api/members": Answers["GET /admin/v1/accounts/{accountId}/users"];
  "GET /console/api/overview": {
    balanceUsd: string | null;
    heldUsd: string | null;
    availableUsd: string | null;
    timeZone: string;
    spend: {
      todayUsd: string;
      yesterdayUsd: string;
      monthUsd: string;
      lastMonthUsd: string;
      lastMonthToThisDayUsd: string;
      days: {
        day: string;
        callsUsd: string;
        sandboxesUsd: string;
        calls: number;
      }[];
    };
    publicUrl: string;
    strategies: string[];
    models: {
      name: string;
      aliases: string[];
      protocols: ("messages" | "chat" | "responses" | "embeddings")[];
      context: number;
      maxOutput: number;
      upstreams: string[];
      facts: {
        upstream: string;
        region: string[] | "unknown";
        retention: number | "none" | "unknown";
        trains: "no" | "yes" | "unknown";
        inputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        outputs:
          | ("text" | "image" | "audio" | "document" | "video")[]
          | "unknown";
        tools: boolean | "unknown";
        structuredOutputs: boolean | "unknown";
        reasoning: boolean | "unknown";
        context: number;
        maxOutput: number;
        released: string;
        retires: string;
      }[];
      pricePerMillion: {
        input: string;
        output: string;
        cacheWrite: string;
        cacheWrite1h: string;
        cacheRead: string;
        audioInput?: string;
        audioCacheRead?: string;
        audioOutput?: string;
        imageInput?: string;
        imageOutput?: string;
      };
    }[];
    upstreams: {
      name: string;
      tier: "official" | "high-sla" | "standard";
      state:
        | "disabled"
        | "taken-out"
        | "ejected"
        | "probing"
        | "resting"
        | "available";
      successRate: number | null;
      firstTokenMs: number | null;
      models: string[];
    }[];
  };
  "GET /console/api/sandboxes": {
    items: {
      id: string;
      offeringId: string;
      offeringName: string;
      observedState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | "UNKNOWN";
      desiredState: "RUNNING" | "SUSPENDED" | "TERMINATED" | null;
      lifecyclePhase:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDING"
        | "SUSPENDED"
        | "RESUMING"
        | "TERMINATING"
        | "RECONCILING"
        | "TERMINATED"
        | "FAILED";
      lastConfirmedState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | null;
      stateVersion: number;
      totalCost: string;
      resources: {
        cpu: number;
        memoryGiB: number;
        volumeGiB: number;
        gpu: {
          model: string;
          count: number;
        }[];
      };
      reservedUntil: string | null;
      createdAt: string;
      terminatedAt: string | null;
      policy: {
        resumeOnAccess: boolean;
        idleTimeoutSeconds: number | null;
        maxLifetimeSeconds: number | null;
        maxTotalCostUsd: string | null;
        onFundsExhausted: "suspend" | "terminate";
      };
      /** @deprecated */
      autoResume: boolean;
      failure: {
        code: string;
        message: string;
      } | null;
      idempotencyKey: string;
      metadata: Record<string, unknown>;
    }[];
    stateCounts: {
      ALL: number;
      ACTIVE: number;
      HISTORY: number;
      PROVISIONING: number;
      RUNNING: number;
      SUSPENDED: number;
      FAILED: number;
      TERMINATED: number;
      UNKNOWN: number;
    };
    page: number;
    pageSize: number;
    total: number;
  };
  "GET /console/api/sandboxes/{id}": {
    id: string;
    offeringId: string;
    offeringName: string;
    observedState:
      | "PROVISIONING"
      | "RUNNING"
      | "SUSPENDED"
      | "FAILED"
      | "TERMINATED"
      | "UNKNOWN";
    desiredState: "RUNNING" | "SUSPENDED" | "TERMINATED" | null;
    lifecyclePhase:
      | "PROVISIONING"
      | "RUNNING"
      | "SUSPENDING"
      | "SUSPENDED"
      | "RESUMING"
      | "TERMINATING"
      | "RECONCILING"
      | "TERMINATED"
      | "FAILED";
    lastConfirmedState:
      | "PROVISIONING"
      | "RUNNING"
      | "SUSPENDED"
      | "FAILED"
      | "TERMINATED"
      | null;
    stateVersion: number;
    totalCost: string;
    resources: {
      cpu: number;
      memoryGiB: number;
      volumeGiB: number;
      gpu: {
        model: string;
        count: number;
      }[];
    };
    reservedUntil: string | null;
    createdAt: string;
    terminatedAt: string | null;
    policy: {
      resumeOnAccess: boolean;
      idleTimeoutSeconds: number | null;
      maxLifetimeSeconds: number | null;
      maxTotalCostUsd: string | null;
      onFundsExhausted: "suspend" | "terminate";
    };
    /** @deprecated */
    autoResume: boolean;
    failure: {
      code: string;
      message: string;
    } | null;
    idempotencyKey: string;
    metadata: Record<string, unknown>;
    offering: {
      id: string;
      name: string;
      supplier: string;
      status: "AVAILABLE" | "UNAVAILABLE";
      region: string;
      isolation: "virtual-machine" | "container" | "namespaces" | "none";
      resources: {
        cpu: number;
        memoryGiB: number;
        volumeGiB: number;
        gpu: {
          model: string;
          count: number;
        }[];
      };
      capabilities: {
        exec: boolean;
        backgroundExec: boolean;
        files: boolean;
        ports: boolean;
      };
      lifecycle: {
        suspension: {
          supported: boolean;
          preserves: "memory" | "filesystem" | null;
        };
        resumeOnAccess: boolean;
        maxContinuousRuntimeSeconds: number;
      };
      billing: {
        currency: "USD";
        estimatedHourlyUsdByState: {
          PROVISIONING: string;
          RUNNING: string;
          SUSPENDED: string;
        };
        initialReservationUsd: string;
      };
    };
    operations: Answers["DELETE /console/api/sandboxes/{id}"][];
    events: {
      id: string;
      sequence: number;
      type: string;
      status: "PENDING" | "SUCCEEDED" | "FAILED";
      previousState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | "UNKNOWN"
        | null;
      currentState:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDED"
        | "FAILED"
        | "TERMINATED"
        | "UNKNOWN";
      lifecyclePhase:
        | "PROVISIONING"
        | "RUNNING"
        | "SUSPENDING"
        | "SUSPENDED"
        | "RESUMING"
        | "TERMINATING"
        | "RECONCILING"
        | "TERMINATED"
        | "FAILED";
      stateVersion: number;
      operationId: string | null;
      source: "caller" | "supplier" | "policy" | "gateway";
      message: string | null;
      createdAt: string;
    }[];
    usageSegments: {
      id: string;
      sequence: number;
      state: "PROVISIONING" | "RUNNING" | "SUSPENDED";
      startsAt: string;
      endsAt: string | null;
      status: "OPEN" | "SETTLED";
      hourlyUsd: string;
      seconds: number | null;
      amount: string;
    }[];
    billingPeriods: {
      id: string;
      sequence: number;
      startedAt: string;
      endedAt: string | null;
      coversUntil: string;
      status: "OPEN" | "SETTLED";
      reservedAmount: string;
      amount: string | null;
      settledAt: string | null;
    }[];
    auditCounts: {
      operations: number;
      events: number;
      usageSegments: number;
      billingPeriods: number;
    };
  };
  "GET /console/api/sandboxes/{id}/audit": {
    items: (
      | Answers["DELETE /console/api/sandboxes/{id}"]
      | {
          id: string;
          sequence: number;
          type: string;
          status: "PENDING" | "SUCCEEDED" | "FAILED";
          previousState:
            | "PROVISIONING"
            | "RUNNING"
            | "SUSPENDED"
            | "FAILED"
            | "TERMINATED"
            | "UNKNOWN"
            | null;
          currentState:
            | "PROVISIONING"
            | "RUNNING"
            | "SUSPENDED"
            | "FAILED"
            | "TERMINATED"
            | "UNKNOWN";
          lifecyclePhase:
            | "PROVISIONING"
            | "RUNNING"
            | "SUSPENDING"
            | "SUSPENDED"
            | "RESUMING"
            | "TERMINATING"
            | "RECONCILING"
            | "TERMINATED"
            | "FAILED";
          stateVersion: number;
          operationId: string | null;
          source: "caller" | "supplier" | "policy" | "gateway";
          message: string | null;
          createdAt: string;
        }
      | {
          id: string;
          sequence: number;
          state: "PROVISIONING" | "RUNNING" | "SUSPENDED";
          startsAt: string;
          endsAt: string | null;
          status: "OPEN" | "SETTLED";
          hourlyUsd: string;
          seconds: number | null;
          amount: string;
        }
      | {
          id: string;
          sequence: number;
          startedAt: string;
          endedAt: string | null;
          coversUntil: string;
          status: "OPEN" | "SETTLED";
          reservedAmount: string;
          amount: string | null;
          settledAt: string | null;
        }
    )[];
    kind: "operations" | "events" | "usageSegments" | "billingPeriods";
    page: number;
    pageSize: number;
    total: number;
  };
  "GET /console/api/session": {
    user: {
      id: string;
      email: string;
      role: "owner" | "admin" | "member" | "viewer";
      passwordChangedAt: string;
    };
    account: {
      id: string;
      name: string;
      status: "active" | "frozen";
    };
    csrfToken: string;
    createdAt: string;
    expiresAt: string;
    passwordSignIn: boolean;
  };
  "GET /console/api/sign-in": {
    password: boolean;
    oidc: {
      name: string;
      startUrl: string;
    } | null;
  };
  /** @format GET /admin/v1/accounts/{accountId}/teams */
  "GET /console/api/teams": Answers["GET /admin/v1/accounts/{accountId}/teams"];
  "GET /console/api/usage": {
    items: {
      requestId: string;
      createdAt: string;
      keyId: string;
      keyName: string | null;
      protocol: "messages" | "chat" | "responses" | "embeddings";
      path: string;
      strategy: string | null;
      modelRequested: string | null;
      model: string | null;
      upstream: string | null;
      attempts: number;
      fallback: boolean;
      stream: boolean;
      status: number;
      source: "provider" | "platform";
      errorCode: string | null;
      inputTokens: number | null;
      outputTokens: number | null;
      totalTokens: number | null;
      cacheCreationTokens: number | null;
      cacheReadTokens: number | null;
      cost: string;
      billing: "actual" | "estimated" | "released" | "partial" | "expired";
      responseTimeMs: number;
      firstTokenMs: number | null;
      configRevision: string;
      calls: number;
      passes: Record<string, number | string>[] | null;
      flags:
        | (
            | "unknown"
            | "unpriced"
            | "suspect"
            | "translated"
            | "weakened"
            | "region"
          )[]
        | null;
      sessionId: string | null;
      agentId: string | null;
      endUserId: string | null;
      teamId: string | null;
      memberId: string | null;
      tags: Record<string, string> | null;
      region: string | null;
      demands: string | null;
    }[];
    nextCursor: string | null;
  };
  "GET /console/api/usage/series": {
    timeZone: string;
    interval: "minute" | "hour" | "day" | "month";
    from: string;
    to: string;
    starts: string[];
    groups: {
      id: string | null;
      name: string;
      calls: number[];
      costUsd: string[];
      totalCalls: number;
      totalCostUsd: string;
    }[];
    firstTokenMs: {
      p50: (number | null)[];
      p90: (number | null)[];
      p99: (number | null)[];
    };
  };
  /** @format GET /admin/v1/usage/totals */
  "GET /console/api/usage/totals": Answers["GET /admin/v1/usage/totals"];
  "GET /console/api/usage/{requestId}": {
    requestId: string;
    createdAt: string;
    keyId: string;
    keyName: string | null;
    protocol: "messages" | "chat" | "responses" | "embeddings";
    path: string;
    strategy: string | null;
    modelRequested: string | null;
    model: string | null;
    upstream: string | null;
    attempts: number;
    fallback: boolean;
    stream: boolean;
    status: number;
    source: "provider" | "platform";
    errorCode: string | null;
    inputTokens: number | null;
    outputTokens: number | null;
    totalTokens: number | null;
    cacheCreationTokens: number | null;
    cacheReadTokens: number | null;
    cost: string;
    billing: "actual" | "estimated" | "released" | "partial" | "expired";
    responseTimeMs: number;
    firstTokenMs: number | null;
    configRevision: string;
    calls: number;
    passes: Record<string, number | string>[] | null;
    flags:
      | (
          | "unknown"
          | "unpriced"
          | "suspect"
          | "translated"
          | "weakened"
          | "region"
        )[]
      | null;
    sessionId: string | null;
    agentId: string | null;
    endUserId: string | null;
    teamId: string | null;
    memberId: string | null;
    tags: Record<string, string> | null;
    region: string | null;
    demands: string | null;
    routing: {
      of: number;
      candidates: {
        upstream: string;
        score: number;
      }[];
      attempts: {
        upstream: string;
        outcome: string;
        ms: number;
        status?: number | null;
        why?: string | null;
      }[];
      clientRetry?: number;
      intent?: Record<string, unknown>;
      excluded?: {
        upstream: string;
        fact: string;
        demanded: string;
        has: string;
      }[];
    } | null;
    price: {
      input: string;
      output: string;
      cacheWrite: string;
      cacheWrite1h: string;
      cacheRead: string;
      above: {
        tokens: number;
        input: string;
        output: string;
        cacheWrite: string;
        cacheWrite1h: string;
        cacheRead: string;
        audioInput?: string;
        audioCacheRead?: string;
        audioOutput?: string;
        imageInput?: string;
        imageOutput?: string;
      } | null;
      pieces: Record<string, string>;
      variants: Record<
        string,
        {
          input: string;
          output: string;
          cacheWrite: string;
          cacheWrite1h: string;
          cacheRead: string;
          above: {
            tokens: number;
            input: string;
            output: string;
            cacheWrite: string;
            cacheWrite1h: string;
            cacheRead: string;
            audioInput?: string;
            audioCacheRead?: string;
            audioOutput?: string;
            imageInput?: string;
            imageOutput?: string;
          } | null;
          audioInput?: string;
          audioCacheRead?: string;
          audioOutput?: string;
          imageInput?: string;
          imageOutput?: string;
        }
      >;
      isCurrent: boolean;
      audioInput?: string;
      audioCacheRead?: string;
      audioOutput?: string;
      imageInput?: string;
      imageOutput?: string;
    } | null;
  };
  /** @format GET /admin/v1/accounts/{accountId}/webhooks */
  "GET /console/api/webhooks": Answers["GET /admin/v1/accounts/{accountId}/webhooks"];
  /** @format GET /admin/v1/webhooks/{webhookId}/deliveries */
  "GET /console/api/webhooks/{webhookId}/deliveries": Answers["GET /admin/v1/webhooks/{webhookId}/deliveries"];
  "GET /operator/api/session": {
    operator: {
      name: string;
      role: "metrics" | "read" | "write" | "owner";
    };
    csrfToken: string;
    createdAt: string;
    expiresAt: string;
  };
  /** @format GET /admin/v1/accounts/{accountId} */
  "PATCH /admin/v1/accounts/{accountId}": Answers["GET /admin/v1/accounts/{accountId}"];
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "PATCH /admin/v1/budgets/{budgetId}": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  /** @format GET /admin/v1/catalogue/proposals/{proposalId} */
  "PATCH /admin/v1/catalogue/proposals/{proposalId}": Answers["GET /admin/v1/catalogue/proposals/{proposalId}"];
  /** @format DELETE /admin/v1/keys/{keyId} */
  "PATCH /admin/v1/keys/{keyId}": Answers["DELETE /admin/v1/keys/{keyId}"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "PATCH /admin/v1/teams/{teamId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format DELETE /admin/v1/users/{userId} */
  "PATCH /admin/v1/users/{userId}": Answers["DELETE /admin/v1/users/{userId}"];
  /** @format DELETE /admin/v1/webhooks/{webhookId} */
  "PATCH /admin/v1/webhooks/{webhookId}": Answers["DELETE /admin/v1/webhooks/{webhookId}"];
  /** @format GET /console/api/account */
  "PATCH /console/api/account": Answers["GET /console/api/account"];
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "PATCH /console/api/budgets/{budgetId}": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  /** @format DELETE /console/api/keys/{keyId} */
  "PATCH /console/api/keys/{keyId}": Answers["DELETE /console/api/keys/{keyId}"];
  /** @format DELETE /admin/v1/users/{userId} */
  "PATCH /console/api/members/{userId}": Answers["DELETE /admin/v1/users/{userId}"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "PATCH /console/api/teams/{teamId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format DELETE /admin/v1/webhooks/{webhookId} */
  "PATCH /console/api/webhooks/{webhookId}": Answers["DELETE /admin/v1/webhooks/{webhookId}"];
  /** @format GET /admin/v1/accounts/{accountId} */
  "POST /admin/v1/accounts": Answers["GET /admin/v1/accounts/{accountId}"];
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "POST /admin/v1/accounts/{accountId}/budgets": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  "POST /admin/v1/accounts/{accountId}/credits": {
    id: string;
    accountId: string;
    amountUsd: string;
    idempotencyKey: string;
    note: string | null;
    createdAt: string;
    balanceUsd: string;
  };
  /** @format POST /admin/v1/accounts/{accountId}/credits */
  "POST /admin/v1/accounts/{accountId}/debits": Answers["POST /admin/v1/accounts/{accountId}/credits"];
  /** @format GET /admin/v1/accounts/{accountId} */
  "POST /admin/v1/accounts/{accountId}/freeze": Answers["GET /admin/v1/accounts/{accountId}"];
  "POST /admin/v1/accounts/{accountId}/invitations": {
    id: string;
    email: string;
    role: "owner" | "admin" | "member" | "viewer";
    teamIds: string[];
    expiresAt: string;
    path: string;
    url: string | null;
  };
  "POST /admin/v1/accounts/{accountId}/keys": {
    id: string;
    accountId: string;
    name: string;
    prefix: string;
    suffix: string;
    status: "active" | "revoked";
    balanceLimit: string | null;
    dailyLimit: string | null;
    monthlyLimit: string | null;
    callsPerMinute: number | null;
    tokensPerMinute: number | null;
    spentUsd: string | null;
    heldUsd: string | null;
    allowedModels: string[] | null;
    debug: boolean;
    teamId: string | null;
    memberId: string | null;
    requiredTags: string[] | null;
    require: string | null;
    createdAt: string;
    expiresAt: string | null;
    allowedAddresses: string[] | null;
    previousSecretUntil: string | null;
    revokedAt: string | null;
    markup: string | null;
    key: string;
  };
  /** @format DELETE /admin/v1/teams/{teamId} */
  "POST /admin/v1/accounts/{accountId}/teams": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format GET /admin/v1/accounts/{accountId} */
  "POST /admin/v1/accounts/{accountId}/unfreeze": Answers["GET /admin/v1/accounts/{accountId}"];
  /** @format DELETE /admin/v1/users/{userId} */
  "POST /admin/v1/accounts/{accountId}/users": Answers["DELETE /admin/v1/users/{userId}"];
  "POST /admin/v1/accounts/{accountId}/webhooks": {
    id: string;
    accountId: string;
    url: string;
    types:
      | (
          | "balance.low"
          | "budget.reached"
          | "account.frozen"
          | "key.expires_soon"
          | "sandbox.state"
          | "webhook.disabled"
        )[]
      | null;
    status: "active" | "disabled";
    createdAt: string;
    secret: string;
  };
  /** @format GET /admin/v1/catalogue/proposals/{proposalId} */
  "POST /admin/v1/catalogue/proposals": Answers["GET /admin/v1/catalogue/proposals/{proposalId}"];
  "POST /admin/v1/catalogue/proposals/{proposalId}/apply": {
    applied: boolean;
    number: number | null;
    newest: number;
    revision: string;
    base: {
      revision: string;
      number?: number;
    };
    changes: {
      what: string;
      before: string | null;
      after: string | null;
    }[];
    warnings: {
      file: string;
      line?: number;
      column?: number;
      message: string;
    }[];
    objections: string[];
    holdsFrom: string;
  };
  "POST /admin/v1/config/reload": {
    revision: string;
    before: string;
    restartNeeded: string[];
  };
  "POST /admin/v1/config/revisions": {
    applied: boolean;
    number: number | null;
    newest: number;
    revision: string;
    base: {
      revision: string;
      number?: number;
    };
    changes: {
      what: string;
      before: string | null;
      after: string | null;
    }[];
    warnings: {
      file: string;
      line?: number;
      column?: number;
      message: string;
    }[];
    objections: string[];
  };
  /** @format POST /admin/v1/config/revisions */
  "POST /admin/v1/config/revisions/{revision}/rollback": Answers["POST /admin/v1/config/revisions"];
  /** @format POST /admin/v1/accounts/{accountId}/keys */
  "POST /admin/v1/keys/{keyId}/rotate": Answers["POST /admin/v1/accounts/{accountId}/keys"];
  /** @format GET /admin/v1/ledger/verify */
  "POST /admin/v1/ledger/repair": Answers["GET /admin/v1/ledger/verify"];
  /** @format GET /admin/v1/rollouts/{name} */
  "POST /admin/v1/rollouts/{name}/pause": Answers["GET /admin/v1/rollouts/{name}"];
  /** @format GET /admin/v1/rollouts/{name} */
  "POST /admin/v1/rollouts/{name}/promote": Answers["GET /admin/v1/rollouts/{name}"];
  /** @format GET /admin/v1/rollouts/{name} */
  "POST /admin/v1/rollouts/{name}/resume": Answers["GET /admin/v1/rollouts/{name}"];
  /** @format GET /admin/v1/rollouts/{name} */
  "POST /admin/v1/rollouts/{name}/rollback": Answers["GET /admin/v1/rollouts/{name}"];
  "POST /admin/v1/sandboxes/places/{id}/lose": {
    id: string;
    supplier: string;
    host: string;
    seenAt: string;
    silent: boolean;
    lostAt: string | null;
    activeSandboxes: number;
  };
  "POST /admin/v1/tokens": {
    id: string;
    name: string;
    role: "metrics" | "read" | "write" | "owner";
    suffix: string;
    createdAt: string;
    expiresAt: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
    token: string;
  };
  /** @format GET /admin/v1/upstreams/{name} */
  "POST /admin/v1/upstreams/{name}/disable": Answers["GET /admin/v1/upstreams/{name}"];
  /** @format GET /admin/v1/upstreams/{name} */
  "POST /admin/v1/upstreams/{name}/enable": Answers["GET /admin/v1/upstreams/{name}"];
  "POST /admin/v1/upstreams/{name}/record": {
    upstream: string;
    model: string;
    protocol: "messages" | "chat" | "responses" | "embeddings";
    files: {
      name: string;
      content: string;
    }[];
    problem: string | null;
  };
  "POST /admin/v1/upstreams/{name}/test": {
    upstream: string;
    model: string;
    protocol: "messages" | "chat" | "responses" | "embeddings";
    ok: boolean;
    status: number | null;
    ms: number;
    problem: string | null;
  };
  "POST /admin/v1/users/{userId}/sign-in-link": {
    url: string | null;
    path: string;
    expiresAt: string;
  };
  "POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver": {
    id: string;
    eventId: string;
    type: string;
    status: "pending" | "delivered" | "failed";
    attempts: number;
    responseStatus: number | null;
    error: string | null;
    nextAttemptAt: string | null;
    createdAt: string;
  };
  /** @format POST /admin/v1/accounts/{accountId}/webhooks */
  "POST /admin/v1/webhooks/{webhookId}/rotate": Answers["POST /admin/v1/accounts/{accountId}/webhooks"];
  /** @format POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver */
  "POST /admin/v1/webhooks/{webhookId}/test": Answers["POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"];
  /** @format DELETE /admin/v1/budgets/{budgetId} */
  "POST /console/api/budgets": Answers["DELETE /admin/v1/budgets/{budgetId}"];
  /** @format POST /admin/v1/accounts/{accountId}/invitations */
  "POST /console/api/invitations": Answers["POST /admin/v1/accounts/{accountId}/invitations"];
  "POST /console/api/keys": {
    id: string;
    name: string;
    prefix: string;
    suffix: string;
    status: "active" | "revoked";
    balanceLimit: string | null;
    dailyLimit: string | null;
    monthlyLimit: string | null;
    callsPerMinute: number | null;
    tokensPerMinute: number | null;
    spentUsd: string | null;
    heldUsd: string | null;
    allowedModels: string[] | null;
    teamId: string | null;
    memberId: string | null;
    requiredTags: string[] | null;
    require: string | null;
    createdAt: string;
    expiresAt: string | null;
    allowedAddresses: string[] | null;
    previousSecretUntil: string | null;
    revokedAt: string | null;
    lastUsedAt: string | null;
    key: string;
  };
  /** @format POST /console/api/keys */
  "POST /console/api/keys/{keyId}/rotate": Answers["POST /console/api/keys"];
  /** @format GET /console/api/session */
  "POST /console/api/session": Answers["GET /console/api/session"];
  /** @format GET /console/api/session */
  "POST /console/api/session/invitation": Answers["GET /console/api/session"];
  /** @format GET /console/api/session */
  "POST /console/api/session/link": Answers["GET /console/api/session"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "POST /console/api/teams": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format POST /admin/v1/accounts/{accountId}/webhooks */
  "POST /console/api/webhooks": Answers["POST /admin/v1/accounts/{accountId}/webhooks"];
  /** @format POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver */
  "POST /console/api/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver": Answers["POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"];
  /** @format POST /admin/v1/accounts/{accountId}/webhooks */
  "POST /console/api/webhooks/{webhookId}/rotate": Answers["POST /admin/v1/accounts/{accountId}/webhooks"];
  /** @format POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver */
  "POST /console/api/webhooks/{webhookId}/test": Answers["POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"];
  /** @format GET /operator/api/session */
  "POST /operator/api/session": Answers["GET /operator/api/session"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "PUT /admin/v1/teams/{teamId}/members/{userId}": Answers["DELETE /admin/v1/teams/{teamId}"];
  /** @format GET /console/api/session */
  "PUT /console/api/password": Answers["GET /console/api/session"];
  /** @format DELETE /admin/v1/teams/{teamId} */
  "PUT /console/api/teams/{teamId}/members/{userId}": Answers["DELETE /admin/v1/teams/{teamId}"];
}
