/** Stops something that was started. Resolves when it has stopped. */
export type Stop = () => Promise<void>;

/** The open resources of a process. One call of `close` closes all of them, the last opened first. */
export interface Resources {
  /** Registers a resource that `close` will close, and returns it. */
  keep<T extends { readonly stop: Stop }>(resource: T): T;
  keep<T>(resource: T, close: (resource: T) => unknown): T;
  /** Closes all resources, even if one fails to close. Throws the first failure at the end. */
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
