/** The same object with every method called through `around`. Requires methods that do not use `this`. */
export function wrapMethods<T extends object>(
  target: T,
  around: (call: () => Promise<unknown>, name: string) => Promise<unknown>,
): T {
  const wrapped = Object.entries(target).map(
    ([name, value]: [string, ((...args: unknown[]) => Promise<unknown>) | object]) => [
      name,
      typeof value === 'function' ? (...args: unknown[]) => around(() => value(...args), name) : value,
    ],
  );
  return Object.fromEntries(wrapped) as T;
}
