export default function Upstreams() {
  return null
}
