//! Two protocol machines face to face, without sockets.

use super::*;
