/** Ends something that was started. Resolves when it has ended. */
export type Stop = () => Promise<void>;

/** The open resources of a process, closed in one place: the last opened first. */
export interface Resources {
  /** Registers a resource to be closed with all others; returns it. */
  keep<T extends { readonly stop: Stop }>(resource: T): T;
  keep<T>(resource: T, close: (resource: T) => unknown): T;
  /** Closes all resources. If one fails, the others are closed all the same, and the first failure is thrown at the end. */
  readonly close: Stop;
}

export function openResources(): Resources {
  const closings: (() => unknown)[] = [];
  return {
    keep: <T>(resource: T, close: (resource: T) => unknown = (each) => (each as { readonly stop: Stop }).stop()) => {
      closings.push(() => close(resource));
      return resource;
    },
    close: async () => {
      const failures: unknown[] = [];
      for (let close = closings.pop(); close !== undefined; close = closings.pop()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
