/** Waits for conditions that hold once enough was heard. Call `look` after everything that is heard. */
export function createWaits(): { look: () => void; until: (holds: () => boolean) => Promise<void> } {
  const checks = new Set<() => void>();
  return {
    look() {
      for (const check of checks) check();
    },
    until: (holds) =>
      new Promise((resolve) => {
        function check(): void {
          if (!holds()) return;
          checks.delete(check);
          resolve();
        }
        checks.add(check);
        check();
      }),
  };
}
