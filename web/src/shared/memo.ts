import { type Component, type FunctionComponent, h } from 'preact';

/** A component that is drawn again only where one of its properties is another one, by identity, or a signal that it reads. */
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
