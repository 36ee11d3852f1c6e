type Method = (...args: unknown[]) => Promise<unknown>;

/** A copy of the object with every method wrapped by `around`. The methods must not use `this`. */
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
