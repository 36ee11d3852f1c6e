import { type Component, type FunctionComponent, h } from 'preact';

/** A component that renders again only if a property changes by identity, or if a signal that it reads changes. */
export function memo<P extends object>(inner: FunctionComponent<P>): FunctionComponent<P> {
  function Memo(this: Component<P>, props: P) {
    this.shouldComponentUpdate = (next) => differs(this.props, next);
    return h(inner, props);
  }
  return Memo;
}

function differs(a: object, b: object): boolean {
  const [before, after] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return (
    Object.keys(before).length !== Object.keys(after).length ||
    Object.keys(after).some((name) => before[name] !== after[name])
  );
}
