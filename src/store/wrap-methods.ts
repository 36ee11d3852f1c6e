type Method = (...args: unknown[]) => Promise<unknown>;

/** The same object with every method replaced by what `around` makes of it. Requires methods that do not use `this`. */
export function wrapMethods<T extends object>(
  target: T,
  around: (method: Method, name: string) => Method,
): T {
  const wrapped = Object.entries(target).map(([name, value]: [string, Method | object]) => [
    name,
    typeof value === 'function' ? around(value as Method, name) : value,
  ]);
  return Object.fromEntries(wrapped) as T;
}
